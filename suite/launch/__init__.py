"""Runs one round of a case in one of several ways, and leaves its files in the run directory; see ``contract``."""
