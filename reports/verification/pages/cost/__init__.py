"""*Hours and cost*."""
