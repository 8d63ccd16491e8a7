"""The RL libraries, one file each, and the controls."""
