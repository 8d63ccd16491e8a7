"""The offline assets: how they are built, and what is said of one that is missing."""
