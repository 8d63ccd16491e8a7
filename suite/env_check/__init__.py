"""Is this machine fit to run a stack? Every fault of the driver stack by its own name, with its repair.

Each module reads one part of the machine into a frozen dataclass (``read``) and judges it by pure functions that return
a ``Check``. ``suite.env_check.report`` gathers all of them.
"""
