"""Tables and words about the cases of a series. Pure."""

from collections.abc import Mapping
from typing import Final

from suite.files.wording import counted
from suite.schema.record import Case, Stack

WITHOUT_ISAAC_SIM: Final = " (no Isaac Sim)"
STACK_NAMES: Final[Mapping[Stack, str]] = {
    "kitless": f"Newton{WITHOUT_ISAAC_SIM}",
    "ovphysx": f"PhysX{WITHOUT_ISAAC_SIM}",
    "isaacsim": "PhysX and RTX in Isaac Sim",
}


def ranks_text(case: Case) -> str:
    """``1 GPU``, ``4 GPUs``; on CPUs ``2 ranks``."""
    return counted(case.world_size, "GPU" if case.device == "cuda" else "rank")


def environments_text(number: int) -> str:
    """``1 environment``, ``4,096 environments``."""
    return f"{number:,} environment{'' if number == 1 else 's'}"
