"""Pages of ways to run: in turns, deterministic, several on one GPU, in two processes."""
