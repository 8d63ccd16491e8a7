"""The state that the steps of a campaign pass on."""

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from rich.console import Console

from suite.campaign.sources import Sources
from suite.files.paths import ROOT
from suite.launch.contract import Runtime
from suite.matrix.catalog import Catalog, load_catalog
from suite.matrix.resources import Cores, Resources
from suite.options.options import Options
from suite.schema.record import Case, CaseResult, Device, Environment, PlannedCase, Stack
from suite.statistics.stopping_rule import Rule
from suite.statistics.twins import is_twin


@dataclass(frozen=True, kw_only=True)
class WholeMatrix:
    """Identifies all cases of a matrix, whichever of them a command runs."""

    sha256: str
    seed: int
    has_twins: bool

    @classmethod
    def of(cls, cases: Sequence[Case]) -> Self:
        text = "\n".join(map(repr, cases))
        return cls(
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            seed=cases[0].seed,
            has_twins=any(map(is_twin, cases)),
        )


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """The state of a campaign; each step returns it with more fields set."""

    options: Options
    console: Console
    machine: Environment
    device: Device
    resources: Resources
    cores_of_gpus: tuple[Cores, ...] = ()  # of a rank on each GPU; (): the ranks of a round share all cores
    catalog: Catalog = field(default_factory=load_catalog)
    stack: Stack = "kitless"  # of the worker; set with the plan
    planned: tuple[PlannedCase, ...] = ()
    whole: WholeMatrix | None = None  # set with the plan
    timed_starts: frozenset[str] = frozenset()  # series with cold starts, see blocks_of; set with the plan
    warm_ups: tuple[PlannedCase, ...] = ()  # of the cases that can run here; never counted
    rule: Rule = field(default_factory=lambda: Rule(rounds=1))  # set with the plan
    runtime: Runtime | None = None
    sources: Sources = field(default_factory=Sources)  # when this command began; with workers after provision
    began_s: float = field(default_factory=time.monotonic)  # when this command started
    started_s: float | None = None  # when it started to run rounds
    results: tuple[CaseResult, ...] = field(default=())
    unfilmed: tuple[str, ...] = ()  # why a case has no video though it was to be filmed
    report_fault: str | None = None  # why the report of the results could not be built

    @property
    def elapsed_s(self) -> float:
        """Wall time since this command started its rounds [s]; 0 before."""
        return 0.0 if self.started_s is None else time.monotonic() - self.started_s

    @property
    def out(self) -> Path:
        name = Path(self.options.selection.matrix).stem + self.options.search.suffix
        return (self.options.results.out or ROOT / "runs" / name).absolute()
