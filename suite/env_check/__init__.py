"""Checks whether this machine can run a stack, and names each fault and its repair.

Each module reads one part of the machine into a frozen dataclass (``read_…``). Pure functions (``judge_…``)
return a ``Judgement``: what was found, and the word and the repair of a fault.
``suite.env_check.report`` lists all checks with what they look at.
"""
