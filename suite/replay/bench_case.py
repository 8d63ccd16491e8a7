"""The only test of a replay session, once for each case. Its rounds are independent processes that have ended."""

from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from suite.replay.clock import CLOCK


@pytest.mark.benchmark(timer=CLOCK)
def test_case(benchmark: BenchmarkFixture, case_id: str, draft: dict[str, Any]) -> None:
    samples_s = iter(draft["samples_s"])
    benchmark.group = draft["series"]
    benchmark.extra_info.update(draft["extra_info"], configuration_id=case_id)
    # Not benchmark(...), which would calibrate itself with a clock that does not run.
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        lambda: CLOCK.play(next(samples_s)), setup=CLOCK.reset, rounds=len(draft["samples_s"]), iterations=1
    )
