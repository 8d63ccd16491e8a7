"""Machines: what they are, how fast their cores are, what was checked."""
