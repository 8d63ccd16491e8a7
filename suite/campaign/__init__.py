"""Takes a campaign from its plan to stored cases, and on where it stopped."""
