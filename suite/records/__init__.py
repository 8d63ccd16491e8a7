"""What ranks wrote becomes a record, and records are stored and read."""
