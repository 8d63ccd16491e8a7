"""One node of several: what it is, what it runs, and whether nodes are alike."""
