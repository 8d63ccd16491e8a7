"""The command line behind nox's sessions ``env_check``, ``plan``, ``bench``, ``store``, ``build`` and ``bundle``."""

import argparse
import dataclasses
import math
import signal
import sys
import time
from collections.abc import Callable
from typing import Any, Final, get_args

from rich.console import Console

from suite.campaign import recover as cut_off
from suite.campaign.capacity.search import of_capacity
from suite.campaign.steps import BENCH, CAPACITY, MANIFESTS, PLAN, RENDER, execute
from suite.env_check.request import add_worker_package
from suite.errors import Interrupted, LabscaleError, UsageError
from suite.external.parent_death import end_with_nox
from suite.images import build
from suite.install import bundle, bundle_contents
from suite.install.worker import provision_worker
from suite.launch import env_check_command as env_check
from suite.launch import registry
from suite.matrix.file import matrix_names
from suite.options.command_line import Parser, any_path, any_text, print_any_name
from suite.options.options import ROOT, Options, RenderFor
from suite.options.types import (
    above_zero,
    counts,
    fraction,
    positive,
    ranks,
    rounds,
    seed,
    volume_claim,
)
from suite.schema.record import Assets, Device, RlLibrary, Stack
from suite.statistics.stopping_rule import TARGET_PRECISION

LOG_WIDTH: Final = 240
ONE_STOP_S: Final = 1.0


def parse(argv: list[str]) -> argparse.Namespace:
    parser = Parser(prog="suite", description="Plan and run scaling benchmarks of NVIDIA Isaac Lab.")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    for name, what in (("plan", "print every case, start nothing"), ("bench", "run the matrix, store and report it")):
        command = commands.add_parser(name, help=what, description=what)
        _add_selection(command)
        command.add_argument("--out", type=any_path, metavar="DIR", help="results folder (default: runs/<matrix>)")
        command.add_argument(
            "--host-label",
            type=any_text,
            metavar="TEXT",
            help="name in published results of the machine that rounds run on",
        )
        registry.add_choosing_arguments(command)
        if name == "bench":
            _add_running(command)
        else:
            _add_rendering(command)
    pack = commands.add_parser(
        "bundle", help="pack labscale for a machine without internet", description=bundle.__doc__
    )
    _add_packing(pack)
    cut_off.add_arguments(
        commands.add_parser("store", help="store what ended of a campaign", description=cut_off.__doc__)
    )
    build.add_arguments(commands.add_parser("build", help="build a container image", description=build.__doc__))
    env_check.add_arguments(commands.add_parser("env_check", help="check this machine", description=env_check.__doc__))
    for name, command in commands.choices.items():
        command.prog = f"nox -s {name} --"
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:  # by itself argparse does not say of which command
        commands.choices[arguments.command].refuse(unknown)
    return arguments


def options_of(arguments: argparse.Namespace) -> Options:
    """The options of ``plan`` and ``bench``."""
    name, settings = registry.chosen(arguments)
    known = {field.name for field in dataclasses.fields(Options)}
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in vars(arguments).items()
        if key in known and not (key == "matrix" and value is None)
    }
    return Options(**given | {"launcher": name, "launcher_settings": settings})


def _add_selection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--matrix",
        type=any_text,
        help=f"{', '.join(matrix_names())}, or the path of a TOML file (default: first where there is a GPU, else "
        "smoke)",
    )
    parser.add_argument(
        "--series", type=any_text, action="append", default=[], metavar="NAME", help="only this series; repeatable"
    )
    parser.add_argument(
        "--case",
        type=any_text,
        action="append",
        default=[],
        metavar="GLOB",
        dest="case_globs",
        help="only matching ids; repeatable",
    )
    parser.add_argument(
        "--rl-library", action="append", default=[], choices=get_args(RlLibrary), dest="rl_libraries", help="only this"
    )
    parser.add_argument(
        "--gpus", type=counts, default=(), metavar="N[,N]", help="only these numbers of ranks, e.g. 1,2,4"
    )
    parser.add_argument(
        "--repeats", type=rounds, metavar="N", help="exactly N rounds, each a fresh process (default: the matrix's)"
    )
    _add_repeats(parser)
    parser.add_argument(
        "--pack", action=argparse.BooleanOptionalAction,
        help="run cases side by side on idle GPUs when a test shows that it does not move the numbers, or never "
        "(default: where there are several GPUs)",
    )  # fmt: skip
    parser.add_argument("--stack", choices=get_args(Stack), help="physics and rendering (default: the matrix's)")
    parser.add_argument("--device", choices=get_args(Device), help="default: cuda when there is a GPU")
    parser.add_argument("--assets", choices=get_args(Assets), default="offline", help="default: offline")
    parser.add_argument("--seed", type=seed, help="of rank 0 (default: the matrix's)")
    parser.add_argument("--worker-python", type=any_path, metavar="PATH", help="a Python that has Isaac Lab already")
    add_worker_package(parser)


def _add_repeats(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--target-precision", type=fraction, nargs="?", const=TARGET_PRECISION, metavar="FRACTION",
        help="go on until the half-width of the 95 %% interval of the median is at most this part of it "
        f"(without a value: {TARGET_PRECISION}; default: the matrix's)",
    )  # fmt: skip
    parser.add_argument("--max-rounds", type=rounds, metavar="N", help="of a case, if the target is not reached before")
    parser.add_argument(
        "--budget-minutes",
        type=above_zero,
        metavar="MIN",
        help="wall time after which only the matrix's rounds still run",
    )
    parser.add_argument(
        "--a-a", action=argparse.BooleanOptionalAction, help="run each series' baseline twice (default: the matrix's)"
    )


def _add_running(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--capacity",
        type=any_text,
        metavar="SERIES",
        help="search for the most environments that one rank of this series takes",
    )
    parser.add_argument(
        "--most-envs", type=positive, metavar="N", help="where a search for capacity ends at the latest"
    )
    parser.add_argument(
        "--profile", type=ranks, default=(), metavar="N[,N]",
        help="then run each case once more with these ranks below Nsight Systems; such a round is never counted",
    )  # fmt: skip
    parser.add_argument("--retry-failed", action="store_true", help="give failed rounds another attempt")
    parser.add_argument(
        "--upstream", action="store_true", help="after each round run Isaac Lab's own benchmark with the same arguments"
    )
    registry.add_arguments(parser)
    parser.add_argument("--accept-eula", action="store_true", help="you accept NVIDIA's licence of Isaac Sim")
    parser.add_argument(
        "--ignore-env-check", action="store_true", help="run also where env_check says that the stack cannot"
    )
    parser.add_argument("--no-report", action="store_false", dest="with_report", help="do not build the HTML page")


def _add_rendering(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--render", choices=get_args(RenderFor), help="write files for this into --out, start nothing")
    parser.add_argument(
        "--image", type=any_text, metavar="NAME", help="with --render, as the cluster's registry has it"
    )
    parser.add_argument(
        "--volume-claim",
        type=volume_claim,
        default="labscale",
        metavar="NAME",
        help="with --render kubernetes: results (default: labscale)",
    )
    parser.add_argument("--accept-eula", action="store_true", help="you accept NVIDIA's licence of Isaac Sim")


def _add_packing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=any_path, required=True, metavar="DIR", help="folder for the parts; new or empty")
    parser.add_argument("--part-size-mib", type=positive, default=bundle.PART_SIZE_MIB, metavar="N", help="default: 58")
    parser.add_argument(
        "--target-has", type=any_path, metavar="FILE",
        help="do not pack what the target has: the output of `python3 -m pip freeze --all` there, by the Python that "
        "will run labscale (default: pack everything, about 6 GB)",
    )  # fmt: skip
    parser.add_argument("--stack", choices=get_args(Stack), default="kitless", help="default: kitless")
    parser.add_argument("--device", choices=get_args(Device), default="cuda", help="of the target (default: cuda)")
    parser.add_argument("--worker-python", type=any_path, metavar="PATH", help="pack the packages of this Python")


def pack(arguments: argparse.Namespace, console: Console) -> None:
    """Provision the worker here, then pack what the target lacks."""

    def say(message: str) -> None:
        console.print(message, highlight=False, markup=False)

    # Read first: a list that is refused should not cost an installation.
    target = bundle_contents.read_freeze(arguments.target_has) if arguments.target_has else bundle.NOTHING
    worker = provision_worker(
        project_root=ROOT,
        stack=arguments.stack,
        worker_python=arguments.worker_python,
        assets="offline",
        on_message=say,
    )
    if worker.asset_root is None:
        raise AssertionError("offline assets have a root")
    bundle.make_bundle(
        project_root=ROOT,
        worker_python=worker.python,
        asset_root=worker.asset_root,
        out_dir=arguments.out,
        part_size_mib=arguments.part_size_mib,
        target=target,
        stack=arguments.stack,
        for_device=arguments.device,
        on_message=say,
    )


def run(command: str, options: Options, console: Console) -> None:
    """``plan`` or ``bench``; a search for capacity is a campaign of its own kind.

    Raises:
        UsageError: an option of the search without the search.
    """
    if options.capacity is None and options.most_envs is not None:
        raise UsageError(f"--most-envs {options.most_envs} limits a search for capacity; add --capacity SERIES.")
    if options.capacity is not None:
        execute(CAPACITY, of_capacity(options), console)
    elif command == "plan":
        execute(MANIFESTS if options.render else PLAN, options, console)
    else:
        execute(RENDER if options.render_only else BENCH, options, console)


def _interrupting() -> Callable[[int, object], None]:
    """A handler that raises KeyboardInterrupt, once for all signals of one stop.

    A scheduler's SIGTERM reaches nox and this process; the end of nox then sends another, which would cut short how
    this process ends its runs.
    """
    last_s = -math.inf

    def interrupt(signum: int, _frame: object) -> None:
        nonlocal last_s
        now_s = time.monotonic()
        if now_s - last_s > ONE_STOP_S:
            last_s = now_s
            raise KeyboardInterrupt(f"signal {signum}")

    return interrupt


def main(argv: list[str]) -> int:
    print_any_name()
    # A log file has no width to wrap to.
    console = Console(width=None if sys.stdout.isatty() else LOG_WIDTH, emoji=False)
    errors = Console(stderr=True, emoji=False)
    signal.signal(signal.SIGTERM, _interrupting())  # a scheduler's stop ends the runs as Ctrl-C does
    try:
        end_with_nox()
        arguments = parse(argv)
        if arguments.command == "bundle":
            pack(arguments, console)
        elif arguments.command == "build":
            build.command(arguments, project_root=ROOT, console=console)
        elif arguments.command == "store":
            cut_off.command(arguments, console)
        elif arguments.command == "env_check":
            return env_check.command(arguments, console)
        else:
            run(arguments.command, options_of(arguments), console)
    except KeyboardInterrupt:
        interrupted = Interrupted("Interrupted. Every finished round is kept; run the same command again to go on.")
        errors.print(str(interrupted), style="red", highlight=False, markup=False)
        return interrupted.exit_code
    except LabscaleError as error:
        errors.print(str(error), style="red", highlight=False, markup=False, soft_wrap=True)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
