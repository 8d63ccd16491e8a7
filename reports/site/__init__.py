"""Builds the pages, and publishes all versions."""
