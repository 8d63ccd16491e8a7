"""A matrix file and the catalog become cases, and a plan of what can run and what it costs."""
