"""*Accepting a machine*: each published set judged among the other machines with its GPUs."""
