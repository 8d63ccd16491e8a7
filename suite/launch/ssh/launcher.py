"""The launcher ``ssh``: rounds on hosts that the user names."""

import argparse
import functools
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.launch.native.launcher import on_this_machine
from suite.launch.nodes import facts
from suite.launch.runtime import Asked, LauncherEntry, Runtime, Say
from suite.launch.ssh import hosts
from suite.launch.ssh.run import SshPlace, run
from suite.options.command_line import configuration_file
from suite.options.types import hosts as host_names


@dataclass(frozen=True, kw_only=True)
class SshSettings:
    nodes: tuple[str, ...] = ()  # the head first
    ssh_config: Path | None = None


def _provision(settings: SshSettings, asked: Asked) -> Runtime:
    """Use the worker in the same folder on every host of ``--nodes``; refuse hosts that differ, by name."""
    inner = on_this_machine(asked)
    place = _place(settings, asked.say)
    found = hosts.look_at_hosts(
        place, facts.arguments_for(asked.request), differing_is_fine=asked.options.place.ignore_env_check
    )
    return replace(
        inner,
        launch=functools.partial(run, place=place),
        machine=found.environment,
        check=lambda: found.report,
    )


def _place(settings: SshSettings, say: Say) -> SshPlace:
    return SshPlace(hosts=settings.nodes, config=settings.ssh_config, say=say)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--nodes",
        type=host_names,
        default=(),
        metavar="HOST,HOST",
        help="run on these hosts over ssh; the first is the head",
    )
    parser.add_argument(
        "--ssh-config",
        type=configuration_file,
        metavar="FILE",
        help="with --nodes: configuration file of ssh, as for `ssh -F`",
    )


SSH: Final = LauncherEntry(
    name="ssh",
    resources=lambda settings, _: hosts.resources(_place(settings, print)),
    provision=_provision,
    settings=SshSettings,
    add_arguments=_add_arguments,
    chosen_by="nodes",
    needs={
        "nodes": "--launcher ssh (Slurm takes --sbatch-option nodelist=HOST,HOST)",
        "ssh_config": "--nodes HOST,HOST, which ssh reaches",
    },
)
