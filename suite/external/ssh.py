"""How ssh is called, here and nowhere else: never asking, with a bound on every wait, in the checkout's folder."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

CONNECT_TIMEOUT_S: Final = 10
ALIVE_INTERVAL_S: Final = 5  # of ssh's own question to the host; after three without an answer it ends
FAILED: Final = 255  # ssh's own exit code


def ssh_argv(command: Sequence[str], *, host: str, working_dir: Path, config: Path | None = None) -> tuple[str, ...]:
    """Render the command for a host where the checkout is in the same folder, without asking for a password.

    ``config`` stands for ``~/.ssh/config`` and the system's, as ``ssh -F`` has it. IPv4 alone: torchrun's rendezvous
    and gloo are then given addresses of one family.
    """
    remote = f"cd {shlex.quote(str(working_dir))} && exec {shlex.join(command)}"
    settings = (
        "BatchMode=yes",
        f"ConnectTimeout={CONNECT_TIMEOUT_S}",
        f"ServerAliveInterval={ALIVE_INTERVAL_S}",
        "AddressFamily=inet",
    )
    options = [part for setting in settings for part in ("-o", setting)]
    own = ("-F", str(config)) if config else ()
    return ("ssh", *own, *options, "-T", "--", host, remote)
