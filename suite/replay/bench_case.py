"""The pytest session that stores cases: its only test runs once for each case, and a plugin passes the cases in.

The rounds of a case are independent processes that have ended. Their times were measured there, so the session's clock
does not run: it returns these times.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from suite.schema.record import CaseResult
from suite.statistics.reduce import ROUND_STATISTIC, round_time_s


class SampleClock:
    """A clock that advances only when a sample is played, by exactly that many seconds.

    pytest-benchmark reads ``timer()`` before and after the target. The first reading is always 0.0, so the difference
    is the sample itself, bit for bit.
    """

    # Stored as options.timer of every benchmark. It tells readers that the storing process did not measure the times.
    __name__ = "labscale.SampleClock (measured inside the training processes)"

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def play(self, now_s: float) -> None:
        self.now_s = now_s


CLOCK = SampleClock()


class Cases:
    """The plugin: gives the cases to the test, takes the document, and keeps the storing machine out of it."""

    def __init__(self, results: Mapping[str, CaseResult]) -> None:
        self.results = results
        self.document: dict[str, Any] = {}
        self.errors: list[str] = []
        self.interrupt: BaseException | None = None

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        # The case id in the test's id makes fullname, pytest-benchmark's key for comparisons, stable for each case.
        metafunc.parametrize("case_id", list(self.results))

    def pytest_benchmark_update_machine_info(self, machine_info: dict[str, Any]) -> None:
        machine_info["cpu"].pop("flags", None)  # about 120 words that do not matter for the result
        machine_info["node"] = "redacted"  # results are published

    @pytest.hookimpl(tryfirst=True)
    def pytest_benchmark_generate_commit_info(self) -> dict[str, Any]:
        return {}  # the current folder's repository did not measure

    def pytest_benchmark_update_json(self, output_json: dict[str, Any]) -> None:
        self.document = output_json

    def pytest_exception_interact(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        self.errors.append(report.longreprtext)

    def pytest_internalerror(self, excrepr: object, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.errors.append(str(excrepr))
        self.interrupt = None if isinstance(excinfo.value, Exception) else excinfo.value

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        self.interrupt = excinfo.value


@pytest.mark.benchmark(timer=CLOCK)
def test_case(benchmark: BenchmarkFixture, request: pytest.FixtureRequest, case_id: str) -> None:
    (plugin,) = (plugin for plugin in request.config.pluginmanager.get_plugins() if isinstance(plugin, Cases))
    result = plugin.results[case_id]
    samples_s = [round_time_s(record) for record in result.completed]
    benchmark.group = result.case.series
    benchmark.extra_info.update(extra_info(result, samples_s))
    unplayed: Iterator[float] = iter(samples_s)
    # Not benchmark(...), which would calibrate itself with a clock that does not run.
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda: CLOCK.play(next(unplayed)), setup=lambda: CLOCK.play(0.0), rounds=len(samples_s), iterations=1
    )


def extra_info(result: CaseResult, samples_s: list[float]) -> dict[str, Any]:
    case = result.case
    return {
        "unit": "seconds per iteration",
        "runs_are": "independent processes",
        "statistic": ROUND_STATISTIC,
        "runs": [record.round for record in result.completed],
        "frames_per_iteration": case.frames_per_iteration if case.has_frames else None,
        "total_fps": [case.frames_per_iteration / sample_s for sample_s in samples_s] if case.has_frames else None,
        "configuration_id": case.case_id,
    }
