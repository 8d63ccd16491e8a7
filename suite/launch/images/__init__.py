"""Builds container images from a table, and lists their packages."""
