"""What a rank finds at the end of its training: whether it did the work it is said to have done, on its own GPU."""
