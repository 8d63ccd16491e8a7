"""What a launcher hands back. It stands apart so that launchers and their registry can both import it."""

from dataclasses import dataclass
from typing import Literal

EndedBy = Literal["timeout", "hung", "lost", "interrupted"]


@dataclass(frozen=True, kw_only=True)
class LaunchResult:
    """How the processes of one round ended; what they measured is in the run directory.

    ``ended_by`` says why labscale or a scheduler ended the run, and is ``None`` when it ended by itself.
    ``exit_code`` is torchrun's; negative when a signal ended it.
    """

    exit_code: int
    ended_by: EndedBy | None
    started_utc: str  # ISO 8601
    wall_time_s: float  # launch to last process gone
    out_of_memory: bool = False  # the memory limit of a container or job was reached, and a process of it killed
    why: str | None = None  # it was ended, or failed, where the launcher knows better than the case or the ranks
    image_digest: str | None = None  # of the container image, sha256:…; None when run without one
    nodes: tuple[str, ...] = ()  # names of its machines, node 0 first: what is stored of messages has none of them
