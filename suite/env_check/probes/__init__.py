"""Programs that ask a driver in a process of their own, which may crash or hang."""
