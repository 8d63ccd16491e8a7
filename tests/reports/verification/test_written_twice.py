"""The verifier's figures of a document against pytest-benchmark, and its constants of samples against the suite."""

import random
from typing import Any

import pytest
from pytest_benchmark.stats import Stats

from reports.verification.samples import (
    AGREEMENT,
    FIRST_ITERATIONS,
    FIRST_MARKED,
    HELD_BACK,
    LEAST_OF_TURN,
    MARKED_EVERY,
)
from reports.verification.stored import RULE, benchmark_stats
from suite.campaign.runs.keeper import MIN_ITERATIONS
from suite.files.paths import ROOT
from suite.records import telemetry as telemetry_summary
from suite.schema import rank_protocol
from suite.statistics import reduce


def test_figures_of_a_document_agree_with_pytest_benchmark() -> None:
    generator = random.Random(7)  # noqa: S311 - data, not secrets
    for count in range(1, 16):
        data = [generator.uniform(0.9, 1.1) for _ in range(count)] + ([3.0] if count > 5 else [])
        theirs: Any = Stats()  # type: ignore[no-untyped-call]
        for value in data:
            theirs.update(value)
        ours = benchmark_stats(data)
        assert (ours.pop("data"), ours.pop("iterations")) == (data, 1)
        expected = {name: theirs.as_dict()[name] for name in ours}
        assert ours == pytest.approx(expected, rel=1e-9), data


def test_what_is_written_twice_is_the_same() -> None:
    """Written a second time on purpose: another rule there is another version of what is stored."""
    assert reduce.ROUND_STATISTIC == RULE
    assert (FIRST_ITERATIONS, LEAST_OF_TURN) == (rank_protocol.FIRST_ITERATIONS, MIN_ITERATIONS)
    assert telemetry_summary.AGREEMENT == AGREEMENT
    assert telemetry_summary.THROTTLING == HELD_BACK
    timing = (ROOT / "tasks" / "rank" / "timing.py").read_text(encoding="utf-8")  # needs torch to be imported
    assert f"MARKED_EVERY: Final = {MARKED_EVERY} " in timing
    assert f"FIRST_MARKED: Final = {FIRST_MARKED} " in timing
