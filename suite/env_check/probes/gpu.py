"""Asks NVML in a process of its own; started by ``suite.env_check.gpu.gpus``."""

import dataclasses

from suite.env_check.probes.answer import open_answer
from suite.external.nvml.state import read

if __name__ == "__main__":
    open_answer()(dataclasses.asdict(read()))
