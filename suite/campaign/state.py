"""What the steps of a campaign hand on to each other."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from suite.files.paths import ROOT
from suite.launch.runtime import Runtime
from suite.matrix.catalog import Catalog, load_catalog
from suite.matrix.resources import Resources
from suite.options.options import Options
from suite.schema.lane import Lane
from suite.schema.record import CaseResult, Device, Environment, PlannedCase, Stack
from suite.statistics.stopping_rule import Rule


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What the steps know; each returns it with more filled in."""

    options: Options
    console: Console
    machine: Environment
    device: Device
    resources: Resources
    catalog: Catalog = field(default_factory=load_catalog)
    stack: Stack = "kitless"  # of the worker; set with the plan
    planned: tuple[PlannedCase, ...] = ()
    warm_ups: tuple[PlannedCase, ...] = ()  # of those that can run here; never counted
    slots: tuple[Lane, ...] = ()  # what the host is shared out in, one for a rank; (): each round has all of it
    rule: Rule = field(default_factory=lambda: Rule(rounds=1))  # set with the plan
    runtime: Runtime | None = None
    began_s: float = field(default_factory=time.monotonic)  # when this command did
    started_s: float | None = None  # likewise, when it began to run rounds
    results: tuple[CaseResult, ...] = field(default=())
    report_fault: str | None = None  # why the page of these could not be built

    @property
    def elapsed_s(self) -> float:
        """Wall time that this command has spent on rounds, what lies between them included."""
        return 0.0 if self.started_s is None else time.monotonic() - self.started_s

    @property
    def out(self) -> Path:
        name = Path(self.options.selection.matrix).stem + ("-capacity" if self.options.search.capacity else "")
        return (self.options.results.out or ROOT / "runs" / name).absolute()
