"""Hours and GPU-hours for a number of frames, and the time to a reward."""
