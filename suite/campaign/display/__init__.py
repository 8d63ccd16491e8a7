"""Terminal output of a campaign."""
