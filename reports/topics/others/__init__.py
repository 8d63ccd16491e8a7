"""Two ways beside each other: physics, nodes, Isaac Lab's own clock, publications."""
