"""Options of every command, as its parser has them, with any values; no command runs anything."""

import argparse
import contextlib
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from unittest import mock

from hypothesis import example, given
from hypothesis import strategies as st
from rich.console import Console

from reports.accept import command as accept
from reports.site import build, publish
from reports.submit import command as submit
from reports.topics.data import export
from reports.topics.history import command as compare_command
from reports.verification import command as verify
from suite import __main__ as suite_command
from suite.campaign import steps
from suite.campaign.identity import refuse_other_options
from suite.campaign.planning.manifests import write_manifests
from suite.campaign.planning.plan import make_plan, show_plan
from suite.campaign.runs.profiling import check_profiler
from suite.commands.campaign_options import options_of
from suite.commands.env_check import request_of
from suite.launch.ray import cluster
from suite.launch.ssh import hosts
from suite.matrix.resources import UNBOUNDED
from suite.options.command_line import Parser
from suite.schema.record import Environment
from tests.fixtures.results.generated_results import CPU_HOST, GPU_HOST
from tests.fuzz.strategies import numbers, taken_or_refused, texts

REPORTS: Final[Mapping[str, Callable[[list[str]], int]]] = {
    "report": build.main, "publish": publish.main, "export": export.main,
    "verify": verify.main, "compare": compare_command.main, "submit": submit.main, "accept": accept.main,
}  # fmt: skip
SENSIBLE: Final = (
    "smoke", "full", "nodes", "physx", "ant-weak", "ant-*", "1", "2", "1,2", "0,1", "0.01", "kitless.sif", "kitless",
    "registry.example.org/kitless:1", "mem=0", "nodelist=a,b", "1-00:00", "gpu01,gpu02", "cuda,egl",
)  # fmt: skip


@functools.cache
def parsers() -> Mapping[str, argparse.ArgumentParser]:
    """The parser of each command, caught where it would begin to read."""
    caught: list[argparse.ArgumentParser] = []

    def catch(parser: argparse.ArgumentParser, _arguments: object) -> None:
        caught.append(parser)
        raise KeyboardInterrupt  # no code takes it for a fault

    with mock.patch.object(Parser, "parse_known_args", catch):
        for main in (*REPORTS.values(), suite_command.parse):
            with contextlib.suppress(KeyboardInterrupt):
                main([])
    *of_reports, of_suite = caught
    choices = next(one.choices for one in of_suite._actions if isinstance(one, argparse._SubParsersAction))
    return dict(zip(REPORTS, of_reports, strict=True)) | choices


@st.composite
def command_lines(draw: st.DrawFn) -> list[str]:
    name = draw(st.sampled_from(sorted(parsers())))
    arguments = [name]
    for action in parsers()[name]._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        reads_all_in_git = action.dest in ("folder", "results")  # without it
        is_needed = action.required or not action.option_strings or action.dest == "matrix"
        if draw(st.integers(0, 9)) > (9 if reads_all_in_git else 8 if is_needed else 1):
            continue
        arguments += draw(st.permutations(action.option_strings))[:1]
        if action.nargs != 0:
            arguments.append(draw(_values(action)))
    return arguments


def _values(action: argparse.Action) -> st.SearchStrategy[str]:
    """Return values for an option; a path stays inside the folder of the attempt, as "/" would be searched."""
    below = texts.map(lambda text: "out/" + text.replace("..", "").lstrip("/"))
    if action.metavar in ("DIR", "RESULTS", "RESULTS_DIR", "BEFORE", "AFTER", "FILE", "PATH") or action.dest == "out":
        return below | st.sampled_from(("", "missing", "."))
    anything = texts | numbers.map(str) | st.sampled_from(SENSIBLE)
    return st.sampled_from(sorted(map(str, action.choices))) | anything if action.choices else anything


@given(command_lines(), st.sampled_from((CPU_HOST, GPU_HOST)))
@example(["plan", "--render", "kubernetes", "--image", "i", "--out", "out"], GPU_HOST)
def test_command_line(arguments: list[str], machine: Environment) -> None:
    """Of labscale's own part, a plan is made: the rest of ``bench`` installs and starts."""
    with taken_or_refused() as folder, contextlib.chdir(folder), contextlib.ExitStack() as patches:
        for where, name, value in (
            (steps, "capture", machine), (hosts, "resources", UNBOUNDED), (cluster, "resources", UNBOUNDED),
            (build, "build_site", Path("index.html")), (publish, "build_sites", None),
        ):  # fmt: skip
            patches.enter_context(mock.patch.object(where, name, return_value=value))
        patches.enter_context(mock.patch("suite.campaign.state.ROOT", folder))
        if arguments[0] in REPORTS:
            raise SystemExit(REPORTS[arguments[0]](arguments[1:]))
        asked = suite_command.parse(arguments)
        if asked.command in ("plan", "bench"):
            planned = make_plan(check_profiler(steps.start(options_of(asked), Console())))
            refuse_other_options(planned)
            write_manifests(planned) if planned.options.manifests.render else show_plan(planned)
        elif asked.command == "env_check":
            request_of(asked).arguments()
