"""What the user asked for, and what the steps of a campaign hand on to each other."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rich.console import Console

from suite.provision import Worker
from suite.schema import Assets, CaseResult, Device, Environment, PlannedCase, RlLibrary, Stack

ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for; see ``python -m suite bench --help``."""

    matrix: str
    series: tuple[str, ...] = ()
    case_globs: tuple[str, ...] = ()
    rl_libraries: tuple[RlLibrary, ...] = ()
    gpus: tuple[int, ...] = ()
    repeats: int | None = None
    stack: Stack | None = None
    device: Device | None = None
    assets: Assets = "offline"
    seed: int | None = None
    worker_python: Path | None = None
    out: Path | None = None
    host_label: str | None = None
    retry_failed: bool = False
    upstream: bool = False
    with_report: bool = True
    ignore_env_check: bool = False


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What the steps know; each returns it with more filled in."""

    options: Options
    console: Console
    machine: Environment
    device: Device
    planned: tuple[PlannedCase, ...] = ()
    worker: Worker | None = None
    results: tuple[CaseResult, ...] = field(default=())

    @property
    def out(self) -> Path:
        return (self.options.out or ROOT / "runs" / Path(self.options.matrix).stem).absolute()

    @property
    def stack(self) -> Stack:
        return self.options.stack or "kitless"
