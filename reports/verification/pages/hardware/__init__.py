"""*Where it ran* and the pages of GPU models."""
