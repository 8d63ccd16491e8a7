"""What lies between the ranks of a round: the offsets of the nodes' clocks, and how data travelled."""
