"""A sampler's readings: their file, and their summary over a round's steady part, on one node or several."""
