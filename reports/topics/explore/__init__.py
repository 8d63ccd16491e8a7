"""Explore: one task, library, GPU and metric, as the reader chooses."""
