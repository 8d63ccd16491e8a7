"""How a task behaves: one page for each series."""
