"""Rounds on this machine alone."""
