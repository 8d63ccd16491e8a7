"""Checks of a rank after its training: whether it did the work that its case states, on its own GPU alone."""
