"""Rounds of several nodes: what a node is and runs, what supervises all of them, and the launchers ssh and ray."""
