"""The checks of several nodes, run on each and compared."""
