"""Dataclasses that cross boundaries or are stored. They import the standard library only."""
