"""Every launcher. To add one: write its file, and name its entry in ``LAUNCHERS``.

Which options go together is decided here too. An option that would have no effect is refused, because the user expects
one.
"""

import argparse
from collections.abc import Callable, Iterator
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
from suite.options.declaration import add_options, declared_in, given, read
from suite.options.options import DECLARED, Manifests, Options, Place, Rounds, Setup, flag_of, unused_with
from suite.schema.record import Environment

LAUNCHERS: Final[dict[str, LauncherEntry[Any]]] = {
    entry.name: entry for entry in (NATIVE, CONTAINER, APPTAINER, SLURM, SSH, RAY, EMULATED)
}
DEFAULT: Final = NATIVE.name
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
    if not entry_of(options).installs_workers:
        those = _named(lambda entry: entry.installs_workers)
        return f"--launcher {options.place.launcher} has one worker for all runs; run it with --launcher {those}"
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


def runtime_of(asked: Asked) -> Runtime:
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
        "--launcher", choices=tuple(LAUNCHERS), default=DEFAULT, help=f"how runs are started (default: {DEFAULT})"
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
        by_option = (entry for entry in LAUNCHERS.values() if entry.chosen_by in given(entry.settings, arguments))
        name = next((entry.name for entry in by_option), DEFAULT)
    entry = LAUNCHERS[name]
    _refuse_useless(arguments, entry)
    if lacking := list(_lacking(arguments, entry)):
        _, needed, got = lacking[0]
        flags = [flag_of(option) for option, *why in lacking if why == [needed, got]]
        raise UsageError(f"{', '.join(flags)}: only with {needed}, got {got}. Add what is missing, or leave it out.")
    return name, read(entry.settings, arguments)


def _refuse_useless(arguments: argparse.Namespace, entry: LauncherEntry[Any]) -> None:
    """Refuse options that have no effect beside another."""
    render, python = getattr(arguments, "render", None), arguments.worker_python
    in_image = not render and (entry.always_in_image or getattr(arguments, "image", None))
    given_options = [name for other in LAUNCHERS.values() for name in given(other.settings, arguments)]
    of_launchers = tuple(given_options)
    given_options += [name for group in (Setup, Rounds, Place) for name in given(group, arguments)]
    of_worker, packages = ("worker_python", "worker_packages"), ("worker_packages",)
    has_its_own = "runs the worker of an image, which has what it was built with"
    only_writes = getattr(arguments, "render_only", False)
    for is_chosen, what, why, useless in (
        (render, f"--render {render}", "writes files for a cluster that chooses its own nodes", of_launchers),
        (render, f"--render {render}", "writes commands for an image, which has its own Python", of_worker),
        (in_image, f"--launcher {entry.name} in an image", has_its_own, packages),
        (python, f"--worker-python {python}", "takes a Python as it is (install the package there)", packages),
        (only_writes, "--render-only", "writes scripts and runs nothing", unused_with("--render-only")),
    ):
        if is_chosen and (flags := [flag_of(name) for name in given_options if name in useless]):
            raise UsageError(f"{what} {why}, so it has no use for {', '.join(flags)}. Leave either out.")


def _lacking(arguments: argparse.Namespace, entry: LauncherEntry[Any]) -> Iterator[tuple[str, str, str]]:
    """Yield each option that has no effect without another, what that is, and what was chosen instead."""
    launcher, render = f"--launcher {entry.name}", getattr(arguments, "render", None)
    for other in LAUNCHERS.values():
        for name in given(other.settings, arguments) if other is not entry else ():
            yield name, declared_in(other.settings)[name].needs or f"--launcher {other.name}", launcher
    of_place = given(Place, arguments)
    if "render_only" in of_place and not entry.writes_scripts:
        yield "render_only", f"--launcher {_named(lambda writer: writer.writes_scripts)}", launcher
    if "image" in of_place and not entry.image and not render:
        users = _named(lambda user: user.image is not None)
        yield "image", f"bench --launcher {users}, or with plan --render", launcher
    for name in given(Manifests, arguments):
        renders = DECLARED[name].renders if name != "render" else tuple(MANIFESTS)
        if render not in renders:
            yield name, f"plan --render {joined(renders, 'or')}", f"--render {render}" if render else "no --render"


def _named(can: Callable[[LauncherEntry[Any]], bool]) -> str:
    return joined([entry.name for entry in LAUNCHERS.values() if can(entry)], "or")
