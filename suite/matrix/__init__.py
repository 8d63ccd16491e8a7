"""Make cases from a matrix file and the catalog, and plan which can run and what they cost."""
