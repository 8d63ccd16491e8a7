"""The shape of a case's document around its result, which ``suite.records.store`` checks: other tools may lose it."""

from typing import Any, TypedDict

from suite.files.json_file import fault_of


class _ExtraInfo(TypedDict):
    statistic: str


class _Stats(TypedDict):
    data: list[float]
    q3: float


class _Benchmark(TypedDict):
    extra_info: _ExtraInfo
    stats: _Stats


class _Document(TypedDict):
    """What is looked into; what is only compared may be anything."""

    machine_info: dict[str, Any]
    commit_info: dict[str, Any]
    benchmarks: list[_Benchmark]


def fault_of_shape(document: object) -> str | None:
    """What is not as pytest-benchmark writes it, in one line."""
    return fault_of(document, _Document)
