"""What a training takes, in hours and GPU-hours."""
