"""Renders and makes every call of ssh: it never asks, every wait is bounded, and it runs in the checkout's folder."""

import shlex
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from suite.external.program import ProgramRun, run_program
from suite.schema.rank_protocol import travelling

CONNECT_TIMEOUT_S: Final = 10
ALIVE_INTERVAL_S: Final = 5  # between ssh's own questions to the host; ssh ends after three without an answer
AT_ONCE: Final = 32  # most hosts that are asked at the same time
FAILED: Final = 255  # exit code of ssh itself


def ssh_argv(
    command: Sequence[str],
    *,
    host: str,
    working_dir: Path,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Render the command for a host that has the checkout in the same folder, without asking for a password.

    ``config`` replaces ``~/.ssh/config`` and the system's, as in ``ssh -F``. Only IPv4 is used, so that torchrun's
    rendezvous and gloo get addresses of one family. The user's settings in ``environ`` go with the command.
    """
    given = [f"{name}={value}" for name, value in travelling(environ or {}).items()]
    prefix = ("env", *given) if given else ()
    remote = f"cd {shlex.quote(str(working_dir))} && exec {shlex.join((*prefix, *command))}"
    settings = (
        "BatchMode=yes",
        f"ConnectTimeout={CONNECT_TIMEOUT_S}",
        f"ServerAliveInterval={ALIVE_INTERVAL_S}",
        "AddressFamily=inet",
    )
    options = [part for setting in settings for part in ("-o", setting)]
    own = ("-F", str(config)) if config else ()
    return ("ssh", *own, *options, "-T", "--", host, remote)


def run_on_hosts(
    command: Sequence[str],
    *,
    hosts: Sequence[str],
    working_dir: Path,
    environ: Mapping[str, str],
    config: Path | None,
    timeout_s: float,
) -> dict[str, ProgramRun]:
    """Run the command on all hosts at the same time."""

    def run(host: str) -> ProgramRun:
        argv = ssh_argv(command, host=host, working_dir=working_dir, config=config, environ=environ)
        return run_program(argv, environ={**environ, "LC_ALL": "C"}, timeout_s=timeout_s)

    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        return dict(zip(hosts, pool.map(run, hosts), strict=True))
