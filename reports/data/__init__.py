"""Stored results as tables."""
