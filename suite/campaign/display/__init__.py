"""What a user sees of a campaign in the terminal."""
