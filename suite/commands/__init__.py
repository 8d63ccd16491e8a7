"""The commands: each file has the options of one and carries it out."""
