"""What settings, and sharing a GPU, buy."""
