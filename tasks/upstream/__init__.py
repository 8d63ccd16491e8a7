"""Isaac Lab's own benchmark: run beside ours, and its files written."""
