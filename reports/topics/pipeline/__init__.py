"""Simulation and learning at the same time, in two processes."""
