"""Isaac Lab's own benchmark: run for comparison, and its result files written for our runs."""
