"""Reads and writes files: TOML, JSON, the cache, and what users name on the command line."""
