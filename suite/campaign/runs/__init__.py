"""Run rounds of cases one after another: counted rounds, profiled rounds, and warm-ups."""
