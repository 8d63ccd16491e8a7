"""A sampler's readings: their file, and their summary over a round's window, on one node or several."""
