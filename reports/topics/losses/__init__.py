"""Where time is lost."""
