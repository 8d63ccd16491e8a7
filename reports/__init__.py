"""Stored results become figures and pages. ``ARCHITECTURE.md`` says which package does what."""
