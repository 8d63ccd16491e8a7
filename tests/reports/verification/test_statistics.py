"""The statistics of stored documents, by formulas of our own, against those of pytest-benchmark."""

import random
import statistics
from collections.abc import Iterator
from typing import Any

from pytest_benchmark.stats import Stats

from reports.verification.finding import differing
from reports.verification.statistics import NOT_RECOMPUTED, stats


def samples() -> Iterator[list[float]]:
    generator = random.Random(7)  # noqa: S311 - data, not secrets
    for count in range(1, 16):
        yield [generator.uniform(0.9, 1.1) for _ in range(count)] + ([3.0] if count > 5 else [])


def test_statistics_agree_with_pytest_benchmark() -> None:
    for data in samples():
        theirs: Any = Stats()  # type: ignore[no-untyped-call]
        for value in data:
            theirs.update(value)
        expected = {name: value for name, value in theirs.as_dict().items() if name not in NOT_RECOMPUTED}
        ours = stats(data)
        assert ours.pop("data") == data
        assert [str(one) for one in differing("x", "stats", ours, expected)] == [], data
        assert ours["median"] == statistics.median(data)
