"""The search for the largest number of environments that fits."""
