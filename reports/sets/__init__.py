"""Reads a version: its sets, what report.toml says of them, and results of other tools."""
