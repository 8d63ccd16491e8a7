"""Figures of a round and of rounds: what is steady, how long an iteration takes, when to stop."""
