"""Runs rounds of cases, one after another: those that count, those below a profiler, and warm-ups."""
