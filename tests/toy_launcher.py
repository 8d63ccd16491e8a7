"""A launcher as somebody would add one, with all that its folder would have. It trains nothing: it greets."""

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.env_check.report import Report
from suite.env_check.request import Needs
from suite.launch.runtime import Asked, LauncherEntry, Runtime
from suite.matrix.resources import Resources
from suite.schema.record import Launch
from tests.simulated_host import SimulatedHost


@dataclass(frozen=True, kw_only=True)
class ToySettings:
    greeting: str = "Hello"


def _provision(settings: ToySettings, asked: Asked) -> Runtime:
    def greet(launch: Launch) -> None:
        asked.say(f"{settings.greeting}, {launch.case.case_id}")

    needs = Needs(features=frozenset({"host"}), checks=frozenset())
    report = Report(host="toy", stack=asked.stack, device=asked.device, needs=needs, checks=(), duration_s=0.0)
    runtime = SimulatedHost(wall_s=0.0, on_start=greet).runtime()
    worker = replace(runtime.worker, cache_dir=asked.out.parent / "cache", asset_root=Path("assets"))
    return replace(runtime, worker=worker, check=lambda: report)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--greeting", default="Hello", metavar="TEXT", help="with --launcher toy: what it says")


TOY: Final = LauncherEntry(
    name="toy",
    resources=lambda _, machine: Resources(nnodes=2, gpus_per_node=0, cpus_per_node=machine.num_cpus or 1),
    provision=_provision,
    settings=ToySettings,
    add_arguments=_add_arguments,
)
