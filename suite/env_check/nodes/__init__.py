"""Runs the checks on several nodes and compares their reports."""
