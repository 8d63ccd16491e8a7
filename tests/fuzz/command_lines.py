"""Options of every command, as its parser has them, with values of every kind; each command stops before it runs."""

import argparse
import contextlib
import functools
import random
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from unittest import mock

from rich.console import Console

from reports.accept import command as accept
from reports.site import build, publish
from reports.submit import command as submit
from reports.topics.data import export
from reports.topics.history import command as compare_command
from reports.verification import command as verify
from suite import __main__ as suite_command
from suite.campaign import steps as campaign
from suite.campaign.bisect.search import of_bisect, require_one_case
from suite.campaign.capacity.search import of_capacity
from suite.campaign.folder import Folder
from suite.campaign.identity import refuse_other_options
from suite.campaign.planning.manifests import write_manifests
from suite.campaign.planning.plan import make_plan, show_plan
from suite.campaign.runs import profiling
from suite.campaign.runs.training import render
from suite.campaign.state import Campaign
from suite.commands import bundle, store, watch
from suite.commands.campaign_options import options_of
from suite.commands.env_check import request_of
from suite.files.paths import ROOT
from suite.install.bundle_contents import read_freeze
from suite.install.worker import locate_worker
from suite.launch.images.table import plan_build
from suite.launch.ray import cluster as ray_place
from suite.launch.slurm import script as slurm_script
from suite.launch.ssh import hosts as ssh_place
from suite.matrix.file import MATRICES_PATH
from suite.matrix.resources import UNBOUNDED
from suite.options.command_line import Parser
from suite.schema.record import Environment, Gpu
from tests.fuzz.mutations import any_number, any_text, mutate_text, mutate_toml
from tests.fuzz.target import Target

type Main = Callable[[Sequence[str]], int]

REPORTS: Final[Mapping[str, Main]] = {
    "report": build.main, "publish": publish.main, "export": export.main,
    "verify": verify.main, "compare": compare_command.main, "submit": submit.main,
    "accept": accept.main,
}  # fmt: skip
RESULTS: Final = ROOT / "reports" / "results" / "2026.11" / "cpu-upstream"  # the smallest set
READ_ONLY: Final = (
    "/dev/null",
    "/dev/zero",
    "/proc/self/mem",
    "/proc/self/fd",
    "missing",
    "results",
    "freeze.txt",
    ".",
)
SENSIBLE: Final = (  # values that some option takes
    "smoke", "full", "nodes", "physx", "ant-weak", "ant-*", "*", "1", "2", "4", "1,2", "0", "0,1", "0.01",
    "kitless.sif", "registry.example.org/kitless:1", "kitless", "results", "mem=0", "nodelist=a,b", "1-00:00", "desk",
    "reframe", "gpus", "cuda,egl", "gpu01,gpu02",
)  # fmt: skip
GPUS: Final = tuple(Gpu(index=index, name="H200", memory_gb=141.0, compute_capability="9.0") for index in range(8))


def run_command(rng: random.Random, folder: Path) -> None:
    """A command with up to five options, in a folder of its own."""
    (folder / "freeze.txt").write_text("torch==2.11.0\n", encoding="utf-8")
    matrix = rng.choice(sorted(MATRICES_PATH.glob("*.toml"))).read_text(encoding="utf-8")
    (folder / "own.toml").write_bytes(mutate_toml(rng, matrix))
    command = rng.choice(list(parsers()))
    if rng.random() < 0.3:
        shutil.copytree(RESULTS, folder / "results")
    arguments = some_arguments(rng, parsers()[command])
    (folder / "arguments.txt").write_text(repr([command, *arguments]), encoding="utf-8")
    with contextlib.chdir(folder), _absent_machine(rng), mock.patch("suite.campaign.state.ROOT", folder):
        if command in REPORTS:
            REPORTS[command](arguments)
        else:
            _begin(suite_command.parse([command, *arguments]))


def some_arguments(rng: random.Random, parser: argparse.ArgumentParser) -> list[str]:
    found: list[str] = []
    actions = [action for action in parser._actions if not isinstance(action, argparse._HelpAction)]
    for action in actions:
        is_needed = action.required or not action.option_strings
        has_large_default = action.dest in ("folder", "results")  # all results that are committed
        share = 0.95 if is_needed else 0.5 if action.dest == "matrix" else 0.12
        if not has_large_default and rng.random() > share:
            continue
        values = [] if action.nargs == 0 else [_value(rng, action)]
        option = rng.choice(action.option_strings) if action.option_strings else None
        if option and values and rng.random() < 0.5:
            found.append(f"{option}={values[0]}")
        else:
            found += [option, *values] if option else values
    if rng.random() < 0.05:
        found.append(mutate_text(rng, rng.choice(found or ["--out"])))
    return found


def _value(rng: random.Random, action: argparse.Action) -> str:
    if action.choices and rng.random() < 0.9:
        return str(rng.choice(list(action.choices)))
    if action.dest == "matrix" and rng.random() < 0.7:
        return "own.toml"
    if action.dest == "out":  # written to: nowhere else
        return rng.choice(("", "out", "results", f"out/{any_text(rng).replace('..', '').lstrip('/')}"))
    if action.metavar in ("DIR", "RESULTS", "RESULTS_DIR", "BEFORE", "AFTER", "FILE", "PATH"):  # "/" would be searched
        return rng.choice((*READ_ONLY, any_text(rng).replace("..", "").lstrip("/")))
    return rng.choice((any_text(rng), str(any_number(rng)), *(rng.choice(SENSIBLE) for _ in range(3))))


@functools.cache
def parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command, caught where it would begin to read."""
    found: dict[str, argparse.ArgumentParser] = {}
    for name, main in REPORTS.items():
        found[name] = _caught(main)
    of_suite = _caught(suite_command.parse)
    for action in of_suite._actions:
        if isinstance(action, argparse._SubParsersAction):
            found |= action.choices
    return found


def _caught(main: Callable[[list[str]], Any]) -> argparse.ArgumentParser:
    class Caught(Exception):
        pass

    caught: list[argparse.ArgumentParser] = []

    def catch(parser: argparse.ArgumentParser, _arguments: object) -> None:
        caught.append(parser)
        raise Caught

    with mock.patch.object(Parser, "parse_known_args", catch), contextlib.suppress(Caught):
        main([])
    return caught[0]


@contextlib.contextmanager
def _absent_machine(rng: random.Random) -> Iterator[None]:
    """A machine with GPUs or without, hosts that answer, and sites that are built at once."""
    machine = Environment(
        host_label=None, cpu_model=None, num_cpus=64, memory_gb=512.0, os=None, kernel=None,
        gpus=rng.choice(((), GPUS)),
    )  # fmt: skip
    with (
        mock.patch.object(campaign, "capture", return_value=machine),
        mock.patch.object(ssh_place, "resources", return_value=UNBOUNDED),
        mock.patch.object(ray_place, "resources", return_value=UNBOUNDED),
        mock.patch.object(build, "build_site", return_value=Path("index.html")),
        mock.patch.object(publish, "build_sites"),
    ):
        yield


def _begin(arguments: argparse.Namespace) -> None:
    """What a command does before it installs, starts or submits anything."""
    match arguments.command:
        case "plan" | "bench":
            _plan(arguments)
        case "watch":
            make_plan(campaign.start(watch.options_of(arguments), Console()))
        case "bundle":
            if arguments.target_has:
                read_freeze(arguments.target_has)
            if arguments.matrix:
                bundle.versions_of(arguments.matrix, arguments.device)
        case "build":
            plan_build(arguments.name, project_root=ROOT, version="1", git_commit=None, git_dirty=None, environ={})
        case "store":
            store.command(arguments, Console())
        case "env_check":
            request_of(arguments).arguments()


def _plan(arguments: argparse.Namespace) -> None:
    options = options_of(arguments)
    if options.search.capacity is not None:
        options = of_capacity(options)
    if options.search.bisect is not None:
        options = of_bisect(options)
    planned = make_plan(profiling.check_profiler(campaign.start(options, Console())))
    if options.search.bisect is not None:
        require_one_case(planned)
    if options.manifests.render:
        write_manifests(planned)
    elif arguments.command == "plan":
        show_plan(planned)
    else:
        refuse_other_options(planned)
        _render_script(planned)


def _render_script(planned: Campaign) -> None:
    worker = locate_worker(project_root=ROOT, stack="kitless", worker_python=None)
    for item in planned.planned[:1]:
        launch = render(planned, worker, Folder(root=planned.out).run_dir(item.case, 0), item.case, 0, python_path=None)
        asked = planned.options.place.launcher_settings
        if isinstance(asked, slurm_script.SlurmOptions):
            slurm_script.render(launch, asked, name="labscale")


COMMAND_LINES: Final[tuple[Target, ...]] = (Target(name="command", attempt=run_command),)
