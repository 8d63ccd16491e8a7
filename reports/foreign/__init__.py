"""Results of other tools: Isaac Lab's training bundles, read strictly, kept as they are, and never mixed into ours."""
