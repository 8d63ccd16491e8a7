"""A campaign: planned, run round by round, resumed, and its cases stored."""
