"""Every launcher. To add one: write its file, and name its entry in ``LAUNCHERS``.

Which options go together is decided here too. An option that would have no effect is refused, because the user expects
one.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from typing import Any, Final

from suite.errors import UsageError
from suite.files.wording import joined
from suite.install.bundle_contents import is_bundled
from suite.launch.apptainer import APPTAINER
from suite.launch.containers import CONTAINER
from suite.launch.contract import Asked, LauncherEntry, ManifestEntry, Runtime
from suite.launch.manifests import KUBERNETES, OSMO
from suite.launch.native import EMULATED, NATIVE
from suite.launch.nodes.ray import RAY
from suite.launch.nodes.ssh import SSH
from suite.launch.slurm.launcher import SLURM
from suite.matrix.resources import UNBOUNDED, Resources
from suite.options.command_line import any_text
from suite.options.declaration import add_options, given, read
from suite.options.options import Manifests, Options, Place, Rounds, Setup, flag_of, unused_with
from suite.schema.record import Environment

LAUNCHERS: Final[dict[str, LauncherEntry[Any]]] = {
    entry.name: entry for entry in (NATIVE, CONTAINER, APPTAINER, SLURM, SSH, RAY, EMULATED)
}
DEFAULT: Final = NATIVE.name
# Options that may not be given, and what is said before and after those that the user gave.
type _Rule = tuple[Iterable[str], str, str]
MANIFESTS: Final[dict[str, ManifestEntry]] = {entry.name: entry for entry in (KUBERNETES, OSMO)}


def entry_of(options: Options) -> LauncherEntry[Any]:
    """The launcher that the user chose."""
    return LAUNCHERS[options.place.launcher]


def is_in_image(options: Options) -> bool:
    """Whether rounds run the worker of an image, not one that labscale installs."""
    return entry_of(options).always_in_image or options.place.image is not None or options.manifests.render is not None


def one_worker(options: Options) -> str | None:
    """Why all cases have the same worker, in words; None: a case may have an environment of its own."""
    if options.manifests.render:
        return f"--render {options.manifests.render} runs the worker of an image"
    if not entry_of(options).has_own_workers:
        those = _named(lambda entry: entry.has_own_workers)
        return f"--launcher {options.place.launcher} has one worker for all cases; run it with --launcher {those}"
    if options.setup.worker_python is not None and not is_bundled():
        return "--worker-python takes a Python as it is; leave it out"
    return None


def resources(options: Options, machine: Environment) -> Resources:
    """How much the place that the user chose can run; scripts and manifests may be for any cluster.

    Raises:
        UsageError: an option asks for more than this machine has, or hosts are missing or named twice.
        SchedulerError: Slurm does not answer, or has no such partition; or a host does not answer.
    """
    if options.manifests.render or options.place.render_only:
        return UNBOUNDED
    return entry_of(options).resources(_settings(options), machine)


def provision(asked: Asked) -> Runtime:
    """Install, build or find what is needed to run ``asked.stack`` in the place that the user chose.

    Raises:
        WorkerEnvironmentError: something is missing that cannot be installed.
        ContainerError: there is no engine or no image.
        UsageError: an image is missing or given with --worker-python, or a pod's digest is not valid.
    """
    return entry_of(asked.options).provision(_settings(asked.options), asked)


def _settings(options: Options) -> object:
    own = options.place.launcher_settings
    return entry_of(options).settings() if own is None else own


def add_choosing_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of launchers that one of their options chooses, without ``--launcher``."""
    for entry in LAUNCHERS.values():
        if entry.chosen_by:
            add_options(parser, entry.settings)


def add_launcher_options(parser: argparse.ArgumentParser) -> None:
    """Add ``--launcher``, what several launchers share, and the options of those that it alone chooses."""
    parser.add_argument(
        "--launcher", choices=tuple(LAUNCHERS), default=DEFAULT, help=f"where rounds run (default: {DEFAULT})"
    )
    for entry in LAUNCHERS.values():
        if not entry.chosen_by:
            add_options(parser, entry.settings)
    images = "; ".join(f"with --launcher {entry.name}: {entry.image}" for entry in LAUNCHERS.values() if entry.image)
    parser.add_argument("--image", type=any_text, metavar="NAME", help=images)
    writers = _named(lambda entry: entry.writes_scripts)
    parser.add_argument(
        "--render-only", action="store_true", help=f"with --launcher {writers}: write the scripts, submit nothing"
    )


def add_manifest_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``plan --render``."""
    parser.add_argument(
        "--render",
        choices=tuple(MANIFESTS),
        help="write the files for this kind of cluster into --out and start nothing",
    )
    parser.add_argument("--image", type=any_text, metavar="NAME", help="with --render: the image's name in a registry")
    add_options(parser, Manifests)


def chosen(arguments: argparse.Namespace) -> tuple[str, object]:
    """The name of the launcher that the arguments choose, and its own options.

    Raises UsageError if options contradict each other, or nothing would look at one.
    """
    name = getattr(arguments, "launcher", DEFAULT)
    if name == DEFAULT:
        by_option = (entry.name for entry in LAUNCHERS.values() if entry.chosen_by in given(entry.settings, arguments))
        name = next(by_option, DEFAULT)
    groups = (Setup, Rounds, Place, Manifests, *(entry.settings for entry in LAUNCHERS.values()))
    of_user = [option for group in groups for option in given(group, arguments)]
    for options, before, after in _rules(arguments, LAUNCHERS[name]):
        if flags := ", ".join(flag_of(option) for option in of_user if option in options):
            raise UsageError(before + flags + after)
    return name, read(LAUNCHERS[name].settings, arguments)


def _rules(arguments: argparse.Namespace, entry: LauncherEntry[Any]) -> Iterator[_Rule]:
    render, launcher = getattr(arguments, "render", None), f"--launcher {entry.name}"
    for other in LAUNCHERS.values():
        own = {field.name: other.needs.get(field.name, f"--launcher {other.name}") for field in fields(other.settings)}
        if render:
            yield _no_use(own, f"--render {render} writes files for a cluster that chooses its own nodes")
        elif other.name != entry.name:
            for need in dict.fromkeys(own.values()):
                yield _only_with([option for option in own if own[option] == need], need, launcher)
    yield from _without_use(arguments, entry, render)
    if not entry.writes_scripts:
        yield _only_with(["render_only"], f"--launcher {_named(lambda other: other.writes_scripts)}", launcher)
    if entry.image is None and render is None:
        users = _named(lambda other: other.image is not None)
        yield _only_with(["image"], f"bench --launcher {users}, or with plan --render", launcher)
    for option in dict.fromkeys(option for manifest in MANIFESTS.values() for option in manifest.takes):
        if render is None or option not in MANIFESTS[render].takes:
            takers = joined([manifest.name for manifest in MANIFESTS.values() if option in manifest.takes], "or")
            got = f"--render {render}" if render else "no --render"
            yield _only_with([option], f"plan --render {takers}", got)


def _without_use(arguments: argparse.Namespace, entry: LauncherEntry[Any], render: str | None) -> Iterator[_Rule]:
    packages = ["worker_packages"]
    if render:
        what = f"--render {render} writes commands for an image, which has its own Python"
        yield _no_use(["worker_python", *packages], what)
    elif entry.always_in_image or getattr(arguments, "image", None):
        inside = f"--launcher {entry.name} in an image"
        yield _no_use(packages, f"{inside} runs the worker of an image, which has what it was built with")
    if arguments.worker_python:
        what = f"--worker-python {arguments.worker_python} takes a Python as it is (install the package there)"
        yield _no_use(packages, what)
    if getattr(arguments, "render_only", False):
        yield _no_use(unused_with("--render-only"), "--render-only writes scripts and runs nothing")


def _only_with(options: Iterable[str], needed: str, got: str) -> _Rule:
    return options, "", f": only with {needed}, got {got}. Add what is missing, or leave it out."


def _no_use(options: Iterable[str], what: str) -> _Rule:
    return options, f"{what}, so it has no use for ", ". Leave either out."


def _named(can: Callable[[LauncherEntry[Any]], bool]) -> str:
    """``container, apptainer or slurm``."""
    return joined([entry.name for entry in LAUNCHERS.values() if can(entry)], "or")
