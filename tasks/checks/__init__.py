"""Checks of a rank: whether it does the work that its case states, on its own GPU alone."""
