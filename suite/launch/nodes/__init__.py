"""One node of several: what it is, what it runs, and nodes emulated on one machine."""
