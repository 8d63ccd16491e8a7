"""Tuned settings and what is learned."""
