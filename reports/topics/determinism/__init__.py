"""What deterministic settings cost, and whether runs of one seed are then equal."""
