"""Container images: what they are made of, how they are built, and what is in them."""
