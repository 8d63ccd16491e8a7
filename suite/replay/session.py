"""Stores measured times with pytest-benchmark: a pytest session in this process plays them, and gives the document."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from suite.errors import StoreError
from suite.files.paths import ROOT
from suite.schema.record import CaseResult
from suite.statistics.reduce import round_time_s

_SESSION: Final = Path(__file__).resolve().with_name("bench_case.py")
# Not the user's folder, configuration, plugins and conftest.py. Nothing is printed, and no signal or hook is changed.
_ARGUMENTS: Final = (
    str(_SESSION), "-c", os.devnull, f"--rootdir={ROOT}", "--noconftest", "--import-mode=importlib", "--assert=plain",
    "--disable-plugin-autoload", "-p", "pytest_benchmark.plugin", "--benchmark-quiet", f"--benchmark-json={os.devnull}",
    *(f"-pno:{name}" for name in (
        "cacheprovider", "terminal", "capture", "logging", "warnings", "faulthandler", "unraisableexception",
        "threadexception",
    )),
)  # fmt: skip
_NEXT_STEP: Final = (
    "Nothing was stored, and the runs are kept. Run again; if the error stays, report it with the output above."
)


def replay(results: Sequence[CaseResult]) -> list[dict[str, Any]]:
    """Return the document that pytest-benchmark makes of each case's completed rounds. One session makes all.

    Raises StoreError if the session fails, or has other numbers than the rounds.
    """
    if not results:
        return []
    import pytest  # noqa: PLC0415 - commands that store nothing start sooner without it

    from suite.replay.bench_case import Cases  # noqa: PLC0415

    cases = Cases({result.case.case_id: result for result in results})
    with _own_environment():
        code = pytest.main([*_ARGUMENTS], plugins=[cases])
    if cases.interrupt is not None:
        raise cases.interrupt
    if code != 0:
        output = "\n".join(cases.errors)
        raise StoreError(f"The replay session ended with exit code {int(code)}:\n{output}\n{_NEXT_STEP}")
    benchmarks = cases.document.get("benchmarks", [])
    _check(benchmarks, results)
    return [cases.document | {"benchmarks": [benchmark]} for benchmark in benchmarks]


@contextmanager
def _own_environment() -> Iterator[None]:
    """Leave out the user's PYTEST_* variables and filters of warnings; pytest-xdist, say, switches benchmarks off."""
    inherited = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith("PYTEST_")}
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        os.environ.update(inherited)


def _check(benchmarks: Sequence[Mapping[str, Any]], results: Sequence[CaseResult]) -> None:
    names = [benchmark["fullname"] for benchmark in benchmarks]
    expected = [f"suite/replay/bench_case.py::test_case[{result.case.case_id}]" for result in results]
    if names != expected:
        raise StoreError(f"The replay session stored {names}, expected {expected}. {_NEXT_STEP}")
    for benchmark, result in zip(benchmarks, results, strict=True):
        stored, samples_s = benchmark["stats"]["data"], [round_time_s(record) for record in result.completed]
        if stored != samples_s:
            raise StoreError(f"The replay session stored {stored} for the samples {samples_s}. {_NEXT_STEP}")
