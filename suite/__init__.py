"""The light half of labscale: plan rounds, launch them, and store their results.

``matrix -> plan -> launch -> collect -> store``. Nothing here imports torch or Isaac Lab; ``tasks`` does, in the worker
environment.
"""

__version__ = "0.1.0"
