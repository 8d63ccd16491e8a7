"""Rounds on several hosts over ssh."""
