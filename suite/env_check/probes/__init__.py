"""Programs that ask a driver in their own process, which may crash or hang."""
