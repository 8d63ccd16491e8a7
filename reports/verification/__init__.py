"""Whether stored results are what their raw samples say: every published figure computed again. Checks are pure."""
