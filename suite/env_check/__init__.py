"""Checks whether this machine can run a stack, and names each fault and its repair.

Each module reads one part of the machine into a frozen dataclass (``read``). Pure functions then judge it and return a
``Judgement``. ``suite.env_check.report`` collects all of them.
"""
