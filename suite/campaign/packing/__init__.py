"""Rounds side by side on one host, and the test whether they disturb each other."""
