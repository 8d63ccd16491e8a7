"""Turns what the ranks wrote into records, and stores and reads records."""
