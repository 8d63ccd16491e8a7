"""Figures of cases, computed again from samples."""
