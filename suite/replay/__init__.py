"""A pytest session of its own that replays measured round times into a pytest-benchmark document."""
