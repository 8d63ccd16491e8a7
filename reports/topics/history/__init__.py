"""Two versions compared."""
