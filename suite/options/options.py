"""What a user asks of ``plan`` and ``bench``: a group for each concern, whose fields declare the options.

``suite.launch.registry`` adds the options that depend on launchers; ``suite.env_check.request``, those of the worker.
"""

import argparse
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, Self, get_args

from packaging.version import Version

from suite.errors import UsageError
from suite.matrix.file import matrix_names
from suite.matrix.own_worker import exact_package, name_of
from suite.options import types
from suite.options.command_line import any_path, any_text
from suite.options.declaration import Mode, declared_in, option, read
from suite.schema.record import Assets, Device, RlLibrary, Stack
from suite.statistics.stopping_rule import TARGET_PRECISION

SEARCHES: Final[tuple[Mode, ...]] = ("--capacity", "--bisect")
KUBERNETES: Final = ("kubernetes",)  # values of --render
OSMO: Final = ("osmo",)


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which cases of which matrix run."""

    matrix: str = option(
        f"{', '.join(matrix_names())}, or the path of a TOML file (default: first if there is a GPU, else smoke)",
        default="",  # until the device is known: see suite.campaign.steps.start
        type=any_text,
    )
    series: tuple[str, ...] = option(
        "only this series, e.g. ant-weak; repeatable",
        default=(), type=any_text, action="append", metavar="NAME", unused=("--capacity",),
    )  # fmt: skip
    case_globs: tuple[str, ...] = option(
        "only configurations whose ids match this pattern; repeatable",
        default=(), flag="--case", type=any_text, action="append", metavar="GLOB",
    )  # fmt: skip
    rl_libraries: tuple[RlLibrary, ...] = option(
        "only this RL library; repeatable",
        default=(), flag="--rl-library", action="append", choices=get_args(RlLibrary),
    )  # fmt: skip
    gpus: tuple[int, ...] = option(
        "only configurations with these numbers of GPUs (processes on a CPU), e.g. 1,2,4",
        default=(), type=types.counts, metavar="N[,N]", unused=("--capacity",),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How many rounds a case gets, and what else runs."""

    repeats: int | None = option(
        "run each configuration exactly N times; with --target-precision, at least N times (default: the matrix's)",
        type=types.rounds,
        metavar="N",
    )
    target_precision: float | None = option(
        "add runs until half the width of the 95 %% interval of the ratio to the baseline of the series "
        "(without a ratio: of its mean time) is at most this fraction of it "
        f"(without a value: {TARGET_PRECISION}; default: the matrix's)",
        type=types.fraction, nargs="?", const=TARGET_PRECISION, metavar="FRACTION",
        unused=("--capacity", "only_learning"),
    )  # fmt: skip
    max_rounds: int | None = option(
        "stop a configuration after N runs, even if it misses the target",
        type=types.rounds, metavar="N", unused=("--capacity", "only_learning"),
    )  # fmt: skip
    budget_minutes: float | None = option(
        "after this wall time, start no more runs of a configuration than --repeats or the matrix requires",
        type=types.above_zero, metavar="MIN", unused=("--capacity", "only_learning"),
    )  # fmt: skip
    a_a: bool | None = option(
        "run the baseline of each series twice, under two names (default: the matrix's)",
        action=argparse.BooleanOptionalAction,
        unused=(*SEARCHES, "only_learning"),
    )
    turns: bool = option(
        "measure runs one after another (default: runs that fit the machine together start together, and are "
        "measured in turns)",
        default=True, flag="--no-turns", action="store_false",
    )  # fmt: skip
    profile: tuple[int, ...] = option(  # ranks
        "afterwards run each configuration once more, not counted, with Nsight Systems on these processes (from 0)",
        default=(), type=types.ranks, metavar="N[,N]", only="bench", unused=(*SEARCHES, "--render-only"),
    )  # fmt: skip
    video: bool = option(
        "afterwards run each configuration once more and film its last seconds; this run is not counted",
        default=False, action="store_true", only="bench", unused=(*SEARCHES, "--render-only"),
    )  # fmt: skip
    retry_failed: bool = option(
        "repeat failed runs", default=False, action="store_true", only="bench", unused=("--render-only",)
    )
    upstream: bool = option(
        "after each run, start Isaac Lab's own benchmark with the same arguments",
        default=False, action="store_true", only="bench", unused=(*SEARCHES, "--render-only", "only_learning"),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What runs the cases: device, stack, assets and the worker."""

    stack: Stack | None = option("physics and renderer (default: the matrix's)", choices=get_args(Stack))
    device: Device | None = option(
        "where the processes run (default: cuda if there is a GPU, else cpu)", choices=get_args(Device)
    )
    assets: Assets = option(
        "offline: labscale builds them; official: NVIDIA's (default: offline)",
        default="offline",
        choices=get_args(Assets),
    )
    seed: int | None = option("seed of the first process (default: the matrix's)", type=types.seed)
    with_packages: tuple[str, ...] = option(  # over the worker's pins
        "every configuration with this version of a package, in an environment of its own; give it once for each",
        default=(), flag="--with", type=types.package, action="append", metavar="NAME==VERSION",
    )  # fmt: skip
    worker_python: Path | None = None
    worker_packages: tuple[str, ...] = ()  # added to the worker: paths and requirements


@dataclass(frozen=True, kw_only=True)
class Releases:
    """Which releases of a package are searched: listed by the user, or those of the index within a range."""

    package: str
    listed: tuple[str, ...] = ()  # the oldest first
    ends: tuple[str, str] | None = None  # None without a list: those of the major version that the worker has

    @classmethod
    def read(cls, text: str) -> Self:
        """Read ``NAME``, ``NAME==OLDEST..NEWEST`` or ``NAME==VERSION,VERSION,…``, of at least two versions."""
        name, is_given, versions = text.partition("==")
        oldest, is_range, newest = versions.partition("..")
        texts = [oldest, newest] if is_range else versions.split(",")
        try:
            package = name_of(exact_package(f"{name}==0"))
            if not is_given:
                return cls(package=package)
            listed = [exact_package(f"{name}=={version}").partition("==")[2] for version in texts]
        except ValueError:
            listed = []
        ordered = sorted(set(listed), key=Version)
        if not types.SEVERAL <= len(ordered) == len(listed) or (is_range and listed != ordered):
            raise argparse.ArgumentTypeError(
                f"got {text!r}, allowed is a package alone, such as newton, with a range of releases, such as "
                "newton==1.6.0..1.8.0, or with at least two releases, such as newton==1.6.0,1.6.1"
            )
        if is_range:
            return cls(package=package, ends=(ordered[0], ordered[1]))
        return cls(package=package, listed=tuple(ordered))


@dataclass(frozen=True, kw_only=True)
class Search:
    """A search in place of a matrix: for the most environments that fit, or for a release that made a case slower."""

    capacity: str | None = option(
        "in place of a matrix, find the most environments that one process of this series can run",
        type=any_text, metavar="SERIES", unused=("--bisect", "only_learning"),
    )  # fmt: skip
    most_envs: int | None = option(
        "with --capacity: try at most N environments", type=types.positive, metavar="N", unused=("--bisect",)
    )
    bisect: Releases | None = option(
        "in place of a matrix, find between which two releases of this package one configuration of the matrix became "
        "slower by a sure amount (default: those on the index with the major version that the worker has); or list "
        "them: NAME==VERSION,VERSION",
        type=Releases.read, metavar="NAME[==OLDEST..NEWEST]", unused=("only_learning",),
    )  # fmt: skip

    @property
    def suffix(self) -> str:
        """What the default folder of results has behind the name of its matrix."""
        if self.bisect is not None:
            return f"-bisect-{self.bisect.package}"
        return "-capacity" if self.capacity else ""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where rounds run."""

    launcher: str = "native"
    launcher_settings: object = None  # its own options, as its entry reads them; None: their defaults
    image: str | None = None
    render_only: bool = False  # write scripts, run nothing
    accept_eula: bool = option("you accept NVIDIA's licence for Isaac Sim", default=False, action="store_true")
    ignore_env_check: bool = option(
        "run even if env_check finds that the stack cannot run", default=False, action="store_true", only="bench"
    )


@dataclass(frozen=True, kw_only=True)
class Manifests:
    """Files for a cluster with a control plane of its own."""

    render: str | None = None
    volume_claim: str = option(
        "the results' volume claim (default: labscale)",
        default="labscale", type=types.object_name, metavar="NAME", renders=KUBERNETES,
    )  # fmt: skip
    tolerations: tuple[str, ...] = option(
        "run on nodes with this taint; repeatable",
        default=(), flag="--toleration", type=types.toleration, action="append", metavar="KEY[=VALUE][:EFFECT]",
        renders=KUBERNETES,
    )  # fmt: skip
    node_selectors: tuple[str, ...] = option(
        "run on nodes with this label alone; repeatable",
        default=(), flag="--node-selector", type=types.label, action="append", metavar="KEY=VALUE", renders=KUBERNETES,
    )  # fmt: skip
    runtime_class: str | None = option(
        "the RuntimeClass, such as nvidia on k3s", type=types.object_name, metavar="NAME", renders=KUBERNETES
    )
    gpu_resource: str = option(
        "what the cluster calls its GPUs (default: nvidia.com/gpu)",
        default="nvidia.com/gpu", type=types.resource_name, metavar="NAME", renders=KUBERNETES,
    )  # fmt: skip
    pull_secrets: tuple[str, ...] = option(
        "a Secret with which the image is pulled; repeatable",
        default=(), flag="--pull-secret", type=types.object_name, action="append", metavar="NAME", renders=KUBERNETES,
    )  # fmt: skip
    pod_cpus: int | None = option("CPUs of a pod", type=types.positive, metavar="N", renders=(*KUBERNETES, *OSMO))
    pod_memory: str | None = option(
        "memory of a pod, e.g. 64Gi", type=types.quantity, metavar="SIZE", renders=(*KUBERNETES, *OSMO)
    )  # fmt: skip
    pod_storage: str | None = option(
        "disk of the task (default: 100Gi)", type=types.quantity, metavar="SIZE", renders=OSMO
    )
    platform: str | None = option(
        "the platform of its pool", type=types.object_name, metavar="NAME", renders=OSMO
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Results:
    """Where results go, how they are labelled, and whether a report follows."""

    out: Path | None = option("results folder (default: runs/<matrix>)", type=any_path, metavar="DIR")
    host_label: str | None = option("the machine's name in published results", type=any_text, metavar="TEXT")
    with_report: bool = option(
        "do not build the HTML page", default=True, flag="--no-report", action="store_false", only="bench"
    )


@dataclass(frozen=True, kw_only=True)
class Options:
    """See ``python -m suite bench --help``."""

    selection: Selection = field(default_factory=Selection)
    setup: Setup = field(default_factory=Setup)
    search: Search = field(default_factory=Search)
    rounds: Rounds = field(default_factory=Rounds)
    place: Place = field(default_factory=Place)
    manifests: Manifests = field(default_factory=Manifests)
    results: Results = field(default_factory=Results)

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> Self:
        """The options in arguments of the same names."""
        return cls(**{name: read(group, arguments) for name, group in GROUPS.items()})


# In the order in which a refusal names their options; every name is that of one field.
GROUPS: Final[dict[str, Any]] = {group.name: group.default_factory for group in fields(Options)}
DECLARED: Final = {name: declared for group in GROUPS.values() for name, declared in declared_in(group).items()}


def flag_of(name: str) -> str:
    """An option as it is typed."""
    if name in DECLARED:
        return DECLARED[name].flag
    return {"worker_packages": "--worker-package"}.get(name, f"--{name.replace('_', '-')}")


def as_typed(options: Options, *names: str) -> list[str]:
    """The words that give these options their values on a command line; none for one without a value."""
    values, words = _values(options), list[str]()
    for name in names:
        value, declared, flag = values[name], DECLARED[name], DECLARED[name].flag
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif declared.settings.get("action") == "append":
            words += [word for item in value for word in (flag, item)]
        elif isinstance(value, tuple):
            words += [flag, ",".join(map(str, value))] if value else []
        elif value is not None:
            words += [flag, str(value)]
    return words


def unused_with(mode: Mode) -> list[str]:
    """Names of the options that have no effect with ``mode``."""
    return [name for name, declared in DECLARED.items() if mode in declared.unused]


def given_unused(options: Options, mode: Mode) -> list[str]:
    """The options that the user gave and that have no effect with ``mode``, as they are typed."""
    values = _values(options)
    return [flag_of(name) for name in unused_with(mode) if values[name]]


def refuse_unused(options: Options, mode: Mode, value: str) -> None:
    """Refuse what a search does not use.

    Raises:
        UsageError: such an option was given.
    """
    if flags := given_unused(options, mode):
        raise UsageError(
            f"{mode} {value} does not use {', '.join(flags)}; leave {'it' if len(flags) == 1 else 'them'} out."
        )


def _values(options: Options) -> dict[str, Any]:
    groups = (getattr(options, group.name) for group in fields(options))
    return {own.name: getattr(group, own.name) for group in groups for own in fields(group)}
