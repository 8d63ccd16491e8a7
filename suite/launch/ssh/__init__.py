"""Rounds on several hosts over ssh, and the same commands for a person to type."""
