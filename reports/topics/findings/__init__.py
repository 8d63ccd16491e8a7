"""What the versions found."""
