"""Every launcher. To add one: write its file, and name its entry in ``LAUNCHERS``.

Which options go together is decided here too. An option that would have no effect is refused, because the user expects
one.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from suite.errors import UsageError
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
        those = _named(lambda one: one.has_own_workers)
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
        by_option = (one for one in LAUNCHERS.values() if one.chosen_by in given(one.settings, arguments))
        name = next((one.name for one in by_option), DEFAULT)
    _refuse_options_of_others(arguments, name)
    for what, why, names in _uses(arguments, LAUNCHERS[name]):
        if useless := _given(arguments, names):
            raise _useless(what, why, useless)
    for option, is_there, needed, got in _needs(arguments, LAUNCHERS[name]):
        if not is_there and (alone := _given(arguments, (option,))):
            raise _missing(alone, needed, got)
    return name, read(LAUNCHERS[name].settings, arguments)


def _refuse_options_of_others(arguments: argparse.Namespace, name: str) -> None:
    render = getattr(arguments, "render", None)
    for entry in LAUNCHERS.values():
        found = given(entry.settings, arguments)
        if found and render:
            raise _useless(f"--render {render}", "writes files for a cluster that chooses its own nodes", found)
        if found and entry.name != name:
            needed = [entry.needs.get(option, f"--launcher {entry.name}") for option in found]
            alike = [option for option, need in zip(found, needed, strict=True) if need == needed[0]]
            raise _missing(alike, needed[0], f"--launcher {name}")


def _uses(arguments: argparse.Namespace, entry: LauncherEntry[Any]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """Yield what was chosen, what it does, and the options that have no effect on it."""
    render, image = getattr(arguments, "render", None), getattr(arguments, "image", None)
    if render:
        of_worker = ("worker_python", "worker_packages")
        yield f"--render {render}", "writes commands for an image, which has its own Python", of_worker
    elif entry.always_in_image or image:
        yield (
            f"--launcher {entry.name} in an image",
            "runs the worker of an image, which has what it was built with",
            ("worker_packages",),
        )
    if arguments.worker_python:
        taken = "takes a Python as it is (install the package there)"
        yield f"--worker-python {arguments.worker_python}", taken, ("worker_packages",)
    if getattr(arguments, "render_only", False):
        yield "--render-only", "writes scripts and runs nothing", unused_with("--render-only")


def _needs(arguments: argparse.Namespace, entry: LauncherEntry[Any]) -> Iterator[tuple[str, bool, str, str]]:
    """Yield an option, whether what it needs was chosen, what that is, and what was chosen instead."""
    render, launcher = getattr(arguments, "render", None), f"--launcher {entry.name}"
    writers = _named(lambda one: one.writes_scripts)
    yield "render_only", entry.writes_scripts, f"--launcher {writers}", launcher
    users = _named(lambda one: one.image is not None)
    in_image = entry.image is not None or render is not None
    yield "image", in_image, f"bench --launcher {users}, or with plan --render", launcher
    got = f"--render {render}" if render else "no --render"
    for option in dict.fromkeys(option for one in MANIFESTS.values() for option in one.takes):
        takers = _either(one.name for one in MANIFESTS.values() if option in one.takes)
        yield option, render is not None and option in MANIFESTS[render].takes, f"plan --render {takers}", got


def _named(can: Callable[[LauncherEntry[Any]], bool]) -> str:
    return _either(entry.name for entry in LAUNCHERS.values() if can(entry))


def _either(names: Iterable[str]) -> str:
    """``container, apptainer or slurm``."""
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


def _useless(what: str, why: str, given: Sequence[str]) -> UsageError:
    return UsageError(f"{what} {why}, so it has no use for {', '.join(map(flag_of, given))}. Leave either out.")


def _missing(given: Sequence[str], needed: str, got: str) -> UsageError:
    return UsageError(
        f"{', '.join(map(flag_of, given))}: only with {needed}, got {got}. Add what is missing, or leave it out."
    )


def _given(arguments: argparse.Namespace, names: Sequence[str]) -> list[str]:
    """Names of the options that the user gave, out of ``names``."""
    return [name for group in (Setup, Rounds, Place, Manifests) for name in given(group, arguments) if name in names]
