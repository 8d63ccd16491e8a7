"""Whether stored results are what their raw samples say: the figures of every case computed again. Checks are pure."""
