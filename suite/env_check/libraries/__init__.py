"""Finds and loads shared libraries, and explains why one does not load."""
