"""What a user asks on the command line, and what the values of options may be."""
