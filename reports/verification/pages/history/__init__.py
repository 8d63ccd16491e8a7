"""*What changed since the last version?*."""
