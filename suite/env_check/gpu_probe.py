"""Asks NVML in a process of its own; started by ``suite.env_check.gpu``."""

import dataclasses

from suite import nvml
from suite.env_check.probe_answer import open_answer

if __name__ == "__main__":
    open_answer()(dataclasses.asdict(nvml.read()))
