"""The light half of labscale: what to run, how to run it, what happened.

``matrix -> plan -> launch -> collect -> store``. Nothing here imports torch or Isaac Lab; those live in ``tasks`` and
run in the worker environment.
"""

__version__ = "0.1.0"
