"""Trainings on one GPU through CUDA MPS beside the same without it, of GENERATED results."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.sets.version import Version, read_version
from reports.topics.shared_gpu import page
from reports.topics.shared_gpu.model import both_ways
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import failed_result, write_results
from tests.reports.topics.shared_gpu.test_page import TWO, alone, result

WITHOUT = (alone(), result([0.8, 0.8], [0.8, 0.8], [0.8, 0.8]))
THROUGH = (alone(mps=True), result([0.64, 0.64], [0.64, 0.64], [0.64, 0.64], mps=True))


def version_of(folder: Path, **sets: Sequence[CaseResult]) -> Version:
    for name, results in sets.items():
        write_results(results, folder / name)
    return read_version(folder, name="generated")


def of_host(label: str, results: Sequence[CaseResult]) -> list[CaseResult]:
    """The same results of another machine."""
    return [
        replace(
            one,
            rounds=tuple(replace(each, environment=replace(each.environment, host_label=label)) for each in one.rounds),
        )
        for one in results
    ]


def test_the_page_compares_both_ways_on_one_machine(tmp_path: Path) -> None:
    version = version_of(tmp_path, a=WITHOUT, b=THROUGH)
    one, two = both_ways(version)
    assert one.over_without is not None
    assert two.over_without is not None
    assert [one.trainings, two.trainings] == [1, 2]
    assert [one.over_without.value, two.over_without.value] == pytest.approx([1, 1.25])
    assert "Through CUDA MPS, 2 trainings together process 1.25 times the frames" in page.answer(version).text
    *_, last = (line.split("\t") for line in page.with_and_without_mps(version).text.splitlines())
    assert last[0] == TWO.case_id
    assert last[2:] == ["2", "4,000 (4,000 to 4,000)", "5,000 (5,000 to 5,000)", "1.25 (1.25 to 1.25)"]


def test_a_report_of_mps_alone_says_so(tmp_path: Path) -> None:
    version = version_of(tmp_path, b=THROUGH)
    assert page.answer(version).text.startswith(
        "On one GPU, through CUDA MPS, 2 trainings together process 1.56 times the frames of one."
    )
    assert page.with_and_without_mps(version).text == ""


def test_machines_are_not_compared_with_each_other(tmp_path: Path) -> None:
    assert both_ways(version_of(tmp_path, a=WITHOUT, b=of_host("another", THROUGH))) == ()


def test_two_sets_of_the_same_way_are_not_compared(tmp_path: Path) -> None:
    assert both_ways(version_of(tmp_path, a=WITHOUT, b=WITHOUT)) == ()


def test_a_number_of_trainings_that_failed_one_way_has_no_ratio(tmp_path: Path) -> None:
    through = (THROUGH[0], failed_result(TWO, outcome="oom", reason="no memory for two"))
    version = version_of(tmp_path, a=WITHOUT, b=through)
    assert [each.over_without is None for each in both_ways(version)] == [False, True]
    assert "Through CUDA MPS" not in page.answer(version).text
    assert page.with_and_without_mps(version).text.endswith("4,000 (4,000 to 4,000)\tn/a\tn/a")
