"""Statistics of rounds: which iterations are steady, how long an iteration takes, when a case has enough rounds."""
