"""How sure the figures are: limits, turns, coverage."""
