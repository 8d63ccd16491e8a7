"""What is between the ranks of a round: how far the clocks of its nodes are apart, and how its data travelled."""
