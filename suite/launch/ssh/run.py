"""Run one round on hosts that ssh reaches. ssh would leave processes; ``suite.launch.nodes.agent`` leaves none."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from suite.launch.nodes.supervisor import Say, supervise
from suite.launch.ssh.remote_host import RemotePart
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Launch


@dataclass(frozen=True, kw_only=True)
class SshPlace:
    """The hosts of a campaign, the head first."""

    hosts: tuple[str, ...]
    config: Path | None  # of ssh
    say: Say


def run(
    launch: Launch,
    *,
    place: SshPlace,
    on_progress: Callable[[int], None] | None = None,
    stop: Event | None = None,
) -> LaunchResult:
    """Run ``launch`` to its end; see ``suite.launch.Launcher``.

    Raises:
        StoreError: the run directory cannot be written, or contains a finished round.
        SchedulerError: a host does not answer before the round has begun, or cannot take part in it.
    """

    def connect(rank: int) -> RemotePart:
        return RemotePart.start(place.hosts[rank], place.config)

    return supervise(launch, connect, say=place.say, on_progress=on_progress, stop=stop)
