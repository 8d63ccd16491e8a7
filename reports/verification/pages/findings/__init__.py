"""*Findings*: what its sections say, a module a section."""
