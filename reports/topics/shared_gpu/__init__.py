"""Several trainings at the same time on one GPU, in total and each."""
