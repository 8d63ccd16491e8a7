"""Statistics of rounds: how long an iteration takes, when a case has enough rounds."""
