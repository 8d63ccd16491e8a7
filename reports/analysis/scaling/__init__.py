"""Cases that differ in their number of ranks: groups, verdicts, and laws fitted to them."""
