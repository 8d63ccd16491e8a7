"""What a user asks on the command line, and the rules that options keep."""
