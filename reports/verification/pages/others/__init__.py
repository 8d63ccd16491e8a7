"""Clocks, nodes, stacks and publications beside these results."""
