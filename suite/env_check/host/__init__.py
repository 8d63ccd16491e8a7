"""Checks the host: cores, memory, limits, disk, the worker and the assets."""
