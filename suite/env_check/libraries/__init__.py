"""Shared libraries: where the loader finds them, and what they export."""
