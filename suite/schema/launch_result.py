"""What a launcher returns. It has its own file so that launchers and their registry can both import it."""

from dataclasses import dataclass
from typing import Literal

EndedBy = Literal["timeout", "hung", "lost", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class LaunchResult:
    """How the processes of one round ended; their measurements are in the run directory.

    ``ended_by`` says why labscale or a scheduler ended the run; it is None if the run ended by itself. ``exit_code`` is
    torchrun's, negative if a signal ended it.
    """

    exit_code: int
    ended_by: EndedBy | None
    started_utc: str  # ISO 8601
    wall_time_s: float  # launch to last process gone
    out_of_memory: bool = False  # a process was killed at the memory limit of a container or job
    oom_kills: int | None = None  # processes of the machine that the kernel killed for lack of memory meanwhile
    why: str | None = None  # why it ended or failed, if the launcher knows more than the case and the ranks
    image_digest: str | None = None  # of the container image, sha256:…; None without an image
    nodes: tuple[str, ...] = ()  # names of its machines, node 0 first, to remove them from stored messages
