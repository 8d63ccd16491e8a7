"""The state that the steps of a campaign pass on, and the files that decide how fast its runs are.

A record names one commit and one set of pins, so a campaign stops when these files change while it runs.
"""

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from rich.console import Console

from suite.env_check.worker import site_folders
from suite.errors import CampaignError
from suite.files.paths import ROOT
from suite.install.damage import Stamps, stamps
from suite.install.pins import sha256
from suite.launch.contract import Runtime
from suite.matrix.catalog import Catalog, load_catalog
from suite.matrix.resources import Cores, Resources
from suite.options.options import Options
from suite.schema.record import Case, CaseResult, Device, Environment, PlannedCase, Stack
from suite.statistics.stopping_rule import Rule

OF_RANKS: Final = (
    "tasks",
    "suite/schema",
    "suite/errors.py",
    "suite/external/core_probe.py",
    "suite/external/parent_death.py",
)


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The ranks' part of the checkout and the packages of the workers, when this command began."""

    code: Mapping[str, str] = field(default_factory=lambda: code_of(ROOT))  # path in the checkout -> SHA-256
    packages: Mapping[Path, Stamps] = field(default_factory=dict)  # by the worker's Python

    @property
    def sha256(self) -> str:
        """Identify the code."""
        return hashlib.sha256(json.dumps(self.code, sort_keys=True).encode()).hexdigest()

    def with_workers(self, pythons: Iterable[Path]) -> Self:
        """Return the files with those of these workers. One that is not on this machine has none."""
        return replace(self, packages={python: _packages(python) for python in pythons})

    def require_same(self, python: Path) -> None:
        """Compare the code, and the packages of the worker with this Python.

        Raises:
            CampaignError: a file differs, is new, or is missing.
        """
        changed = _differing(self.code, code_of(ROOT))
        if python in self.packages:
            changed += _differing(self.packages[python], _packages(python))
        if changed:
            more = f" and {len(changed) - 1} more" if changed[1:] else ""
            raise CampaignError(
                f"{changed[0]}{more} changed since this command began, so its runs would not be of one version. The "
                "run in progress is not counted, and every finished one is kept. Undo the change and run the same "
                "command again, or measure the new state in another folder with --out."
            )


def code_of(root: Path) -> dict[str, str]:
    """Return path -> SHA-256 of the checkout's Python files that run in a rank."""
    paths = (path for part in OF_RANKS for path in (root / part).rglob("*.py") if path.is_file())
    files = (root / part for part in OF_RANKS if part.endswith(".py"))
    return {path.relative_to(root).as_posix(): sha256(path) for path in sorted({*paths, *files})}


def _packages(python: Path) -> Stamps:
    return stamps(list(site_folders(python, {})))


def _differing[T](before: Mapping[str, T], now: Mapping[str, T]) -> list[str]:
    return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))


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
    whole: tuple[Case, ...] = ()  # of the matrix, whichever of them this command runs; set with the plan
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
    def provided(self) -> Runtime:
        """The runtime, once ``provision`` has set it."""
        if self.runtime is None:
            raise AssertionError("the step provision comes first")
        return self.runtime

    @property
    def elapsed_s(self) -> float:
        """Wall time since this command started its rounds [s]; 0 before."""
        return 0.0 if self.started_s is None else time.monotonic() - self.started_s

    @property
    def out(self) -> Path:
        name = Path(self.options.selection.matrix).stem + self.options.search.suffix
        return (self.options.results.out or ROOT / "runs" / name).absolute()
