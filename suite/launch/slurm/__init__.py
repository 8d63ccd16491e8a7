"""Rounds as Slurm jobs."""
