"""What the steps of a campaign hand on to each other."""

from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from suite.options import ROOT, Options
from suite.runtime import Runtime
from suite.schema import CaseResult, Device, Environment, PlannedCase, Stack


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What the steps know; each returns it with more filled in."""

    options: Options
    console: Console
    machine: Environment
    device: Device
    planned: tuple[PlannedCase, ...] = ()
    runtime: Runtime | None = None
    results: tuple[CaseResult, ...] = field(default=())

    @property
    def out(self) -> Path:
        return (self.options.out or ROOT / "runs" / Path(self.options.matrix).stem).absolute()

    @property
    def stack(self) -> Stack:
        return self.options.stack or "kitless"
