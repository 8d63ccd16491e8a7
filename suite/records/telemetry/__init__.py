"""The sampler's files: read, joined over nodes, and summarised."""
