"""Container images: their table, their build, and the list of their packages."""
