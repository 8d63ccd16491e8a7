"""The launcher ``emulated``: rounds of several nodes, which are parts of this machine."""
