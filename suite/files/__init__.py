"""Files and text: TOML and JSON that people write, the cache, and how a number is worded."""
