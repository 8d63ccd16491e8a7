"""Builds the report of env_check, and converts it to and from the JSON that nodes and images send."""

import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import TypeAdapter, ValidationError

from suite.env_check import all_checks
from suite.env_check.all_checks import Machine
from suite.env_check.check import Check, ExitCode
from suite.env_check.request import Needs, Request, needs, unproved, weigh
from suite.records.redaction import public
from suite.schema.record import CheckResult, Device, Stack


@dataclass(frozen=True, kw_only=True)
class Report:
    host: str
    stack: Stack
    device: Device
    needs: Needs
    checks: tuple[Check, ...]
    duration_s: float

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict == "failure")

    @property
    def warnings(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.verdict == "warning")

    @property
    def unproved(self) -> tuple[Check, ...]:
        return unproved(self.checks, self.needs)

    @property
    def exit_code(self) -> ExitCode:
        return 2 if self.failures else 1 if self.warnings or self.unproved else 0

    def as_document(self) -> dict[str, Any]:
        return {
            "host": self.host,
            "stack": self.stack,
            "device": self.device,
            "needed": sorted(self.needs.names),
            "exit_code": self.exit_code,
            "duration_s": round(self.duration_s, 3),
            "checks": [asdict(check) for check in self.checks],
        }

    def as_json(self) -> str:
        return json.dumps(self.as_document(), indent=1, allow_nan=False)


@dataclass(frozen=True, kw_only=True)
class _Document:
    """The output of ``as_document``; evidence is plain JSON."""

    host: str
    stack: Stack
    device: Device
    needed: frozenset[str]
    exit_code: ExitCode
    duration_s: float
    checks: tuple[Check, ...]


def read(text: str) -> Report:
    """Read a report that was printed with ``as_json`` on another node or in an image.

    Raises:
        ValueError: the text is no report; the message says why in one line.
    """
    if not text.strip():
        raise ValueError("the report is empty")
    try:
        sent = TypeAdapter(_Document).validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "file"
        raise ValueError(f"not a report of env_check: {where}: {first['msg']}") from None
    return Report(
        host=sent.host,
        stack=sent.stack,
        device=sent.device,
        needs=Needs.of(sent.needed),
        checks=sent.checks,
        duration_s=sent.duration_s,
    )


def env_check(request: Request, environ: Mapping[str, str] = os.environ) -> Report:
    """Check this machine for a stack. This takes 1 to 2 s; GPUs and an installed worker add some seconds."""
    start_s = time.monotonic()
    machine = all_checks.look(request, environ)
    device = request.device or default_device(machine)
    needed = needs(request.stack, device=device, num_gpus=machine.num_gpus, require=request.require)
    return Report(
        host=platform.node(),
        stack=request.stack,
        device=device,
        needs=needed,
        checks=tuple(weigh(check, needed) for check in all_checks.judge(machine)),
        duration_s=time.monotonic() - start_s,
    )


def default_device(machine: Machine) -> Device:
    """Return cuda even if a driver or GPU is broken: a silent fallback to the CPU would hide the fault."""
    has_gpu = bool(machine.nvml.num_gpus or machine.driver.kernel_version or machine.driver.num_pci_gpus)
    return "cuda" if has_gpu or machine.stack != "kitless" else "cpu"


def summarised(report: Report) -> tuple[CheckResult, ...]:
    """Return every check as records store it: without evidence, and with paths and host names redacted."""
    return tuple(
        CheckResult(
            name=check.name, feature=check.feature, verdict=check.verdict, found=public(check.found), fault=check.fault
        )
        for check in report.checks
    )
