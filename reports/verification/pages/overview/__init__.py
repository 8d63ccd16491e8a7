"""Pages over all of a version: counts, what ran where, and every configuration."""
