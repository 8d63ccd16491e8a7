"""The process that owns a container, so that the next labscale removes the containers of one that was killed."""

import os
import socket
from typing import Final

import psutil

from suite.external.container_spec import OWNER_LABEL
from suite.external.docker_engine import Engine

_SEPARATOR: Final = " "


def label() -> dict[str, str]:
    """Return the label of every container that this process creates."""
    started_s = psutil.Process().create_time()
    return {OWNER_LABEL: _SEPARATOR.join((socket.gethostname(), str(os.getpid()), f"{started_s:.2f}"))}


def is_gone(owner: str) -> bool:
    """Whether the process in a label no longer runs; False for processes of other hosts, which are unknown."""
    host, pid, started_s = owner.split(_SEPARATOR)
    if host != socket.gethostname():
        return False
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" != started_s
    except psutil.NoSuchProcess:
        return True


def remove_abandoned(engine: Engine) -> list[str]:
    """Remove the containers whose owner is gone; return their names."""
    names = [name for name, owner in engine.owners().items() if is_gone(owner)]
    for name in names:
        engine.remove(name)
    return names
