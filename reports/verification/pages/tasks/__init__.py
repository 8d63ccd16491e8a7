"""Pages of tasks and their series."""
