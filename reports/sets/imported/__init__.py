"""Results of Isaac Lab's own benchmark, read and checked."""
