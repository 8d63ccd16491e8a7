"""Whether samples can be true: each against the others, its round, its case and its set."""
