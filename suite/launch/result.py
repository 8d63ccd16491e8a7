"""What a launcher hands back. It stands apart so that launchers and their registry can both import it."""

from dataclasses import dataclass
from typing import Literal

EndedBy = Literal["timeout", "hung", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class LaunchResult:
    """How the processes of one round ended; what they measured is in the run directory.

    ``ended_by`` says why labscale ended the run, and is ``None`` when it ended by itself.
    ``exit_code`` is torchrun's; negative when a signal ended it.
    """

    exit_code: int
    ended_by: EndedBy | None
    started_utc: str  # ISO 8601
    wall_time_s: float  # launch to last process gone
    out_of_memory: bool = False  # a container's memory limit was reached and the kernel killed a process of it
    image_digest: str | None = None  # of the container image, sha256:…; None when run without one
