"""Asks NVML in a process of its own; started by ``suite.env_check.gpu``."""

import dataclasses

from suite.env_check.probe_answer import open_answer
from suite.nvml.state import read

if __name__ == "__main__":
    open_answer()(dataclasses.asdict(read()))
