"""Finds the differences between the reports of several nodes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from suite.env_check.check import Check
from suite.env_check.report import Report

NOT_REPORTED: Final = "not reported"
SLOWER: Final = 0.9  # a bandwidth below this part of the fastest node's is a difference


@dataclass(frozen=True, kw_only=True)
class Group:
    value: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A fact or verdict that differs between nodes: each value with its nodes, most nodes first."""

    subject: str
    groups: tuple[Group, ...]

    def __str__(self) -> str:
        return f"{self.subject}: " + "; ".join(f"{group.value} on {', '.join(group.nodes)}" for group in self.groups)


@dataclass(frozen=True, kw_only=True)
class _Fact:
    """A fact in the evidence of a check. ``path``: keys joined by dots, ``[]`` for every element of a list."""

    subject: str
    check: str
    path: str
    slower: float | None = None  # numbers count as the same down to this part of the largest


_FACTS: Final = (
    _Fact(subject="driver", check="driver_versions", path="kernel_version"),
    _Fact(subject="GPUs", check="gpus_present", path="gpus[].name"),
    _Fact(subject="GPU memory [GB]", check="gpus_present", path="gpus[].memory_gb"),
    _Fact(subject="highest SM clock [MHz]", check="gpus_present", path="gpus[].sm_clock_max_mhz"),
    _Fact(subject="clock setting [MHz]", check="gpus_present", path="gpus[].sm_clock_setting_mhz"),
    _Fact(subject="power limit [W]", check="gpus_present", path="gpus[].power_limit_w"),
    _Fact(subject="ECC", check="gpus_present", path="gpus[].ecc"),
    _Fact(subject="MIG", check="gpus_present", path="gpus[].mig"),
    _Fact(subject="NVLinks active", check="gpus_present", path="gpus[].nvlinks_active"),
    _Fact(subject="NCCL", check="nccl_all_reduce", path="result.nccl"),
    _Fact(
        subject="NCCL bus bandwidth [GB/s]", check="nccl_all_reduce", path="result.bus_bandwidth_gb_s", slower=SLOWER
    ),
    _Fact(subject="cores", check="cores_per_gpu", path="values.num_cpus"),
    _Fact(subject="libc", check="libc", path="values.libc_version"),
    _Fact(subject="assets", check="asset_root", path="manifest_sha256"),
)

# These checks describe a moment, not a machine: their verdicts do not make nodes different.
_MOMENTARY: Final = frozenset({"cpu_load", "core_speed", "gpu_throttling"})


def differences(reports: Mapping[str, Report]) -> tuple[Difference, ...]:
    """Return the differences, facts before verdicts. ``reports``: node -> its report."""
    found = [_difference("stack", {node: report.stack for node, report in reports.items()})]
    for fact in _FACTS:
        values = {node: _value(report, fact) for node, report in reports.items()}
        if fact.slower is None or not _are_close(tuple(values.values()), fact.slower):
            found.append(_difference(fact.subject, {node: _text(value) for node, value in values.items()}))
    names = dict.fromkeys(check.name for report in reports.values() for check in report.checks)
    found += [
        _difference(f"check {name}", {node: _verdict(report, name) for node, report in reports.items()})
        for name in names
        if name not in _MOMENTARY
    ]
    return tuple(difference for difference in found if difference)


def _difference(subject: str, values: Mapping[str, str]) -> Difference | None:
    if len(set(values.values())) <= 1:
        return None
    groups = [
        Group(value=value, nodes=tuple(node for node, other in values.items() if other == value))
        for value in dict.fromkeys(values.values())
    ]
    return Difference(subject=subject, groups=tuple(sorted(groups, key=lambda group: -len(group.nodes))))


def _verdict(report: Report, name: str) -> str:
    check = _check(report, name)
    if check is None:
        return NOT_REPORTED
    return check.verdict.replace("_", " ") + (f" ({check.fault})" if check.fault else "")


def _check(report: Report, name: str) -> Check | None:
    return next((check for check in report.checks if check.name == name), None)


def _value(report: Report, fact: _Fact) -> Any:
    check = _check(report, fact.check)
    if check is None:
        return None
    values = list(_walk(check.evidence, fact.path.split(".")))
    if "[]" not in fact.path:
        return next(iter(values), None)
    return None if values and set(values) == {None} else tuple(values)


def _walk(value: Any, path: list[str]) -> Iterator[Any]:
    if not path:
        yield value
        return
    key, is_list = path[0].removesuffix("[]"), path[0].endswith("[]")
    inside = value.get(key) if isinstance(value, Mapping) else None
    for item in (inside or ()) if is_list else (inside,):
        yield from _walk(item, path[1:])


def _are_close(values: tuple[Any, ...], slower: float) -> bool:
    numbers = [value for value in values if isinstance(value, int | float)]
    return len(numbers) == len(values) and min(numbers, default=0) >= slower * max(numbers, default=0)


def _text(value: Any) -> str:
    """Format a value. A list gives ``"8 x NVIDIA H200"``, so that a missing GPU shows."""
    if isinstance(value, tuple):
        return ", ".join(f"{count} x {_text(item)}" for item, count in Counter(value).items()) or "none"
    return f"{value:.1f}" if isinstance(value, float) else NOT_REPORTED if value is None else str(value)
