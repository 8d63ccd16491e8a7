"""The page Hardware: GPU models by their figures, machines, and what ran where against the records."""

import re
from dataclasses import replace
from functools import cache

import pytest

from reports.figures.tables import rows_by_id, runs_of
from reports.pages import hardware
from reports.pages.hardware import NOT_MEASURED, Comparison, comparisons
from reports.sets.version import read_version
from suite.matrix.catalog import load_catalog
from suite.schema.record import RunRecord
from tests.fixtures.results.committed_results import NEWEST, committed_version, newest_version

CATALOG = load_catalog()


def with_status(comparison: Comparison, status: str) -> Comparison:
    return replace(comparison, figure={**comparison.figure, "status": status})


def configurations_of(comparison: Comparison) -> set[str]:
    rows = runs_of(comparison.version).configurations
    return {f"{row['set']}/{row['configuration']}" for row in rows if row["one_gpu_training"] == comparison.training}


def test_it_says_that_no_gpu_is_clearly_faster_while_every_interval_has_1() -> None:
    every = comparisons(newest_version())
    noise = [own for own in every if own.figure["low"] is not None]
    assert len(noise) > 5
    assert all(own.figure["low"] < 1 < own.figure["high"] for own in noise)
    answer = hardware.answer(newest_version()).text
    assert "no training is clearly faster or slower on one H200 than on one H100 80GB HBM3" in answer
    assert "Within noise, trainings of Ant and Cartpole make " in answer
    busy_percent = [
        row["value"]
        for own in noise
        for row in rows_by_id(own.version).values()
        if row["column"] == "gpu_utilisation_percent"
        and any(row["id"].startswith(f"{name}/") for name in configurations_of(own))
    ]
    assert f"{min(busy_percent):.3g} to {max(busy_percent):.3g} % of the time" in answer
    assert max(busy_percent) < 50
    assert ("Too few machines ran other trainings" in answer) == (len(every) > len(noise))


def test_it_names_what_is_clear(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = comparisons(newest_version())
    monkeypatch.setattr(hardware, "comparisons", lambda _: (with_status(first, "clear"), *others))
    answer = hardware.answer(newest_version()).text
    assert answer.startswith("At equal core speed one H200 makes 1.0")
    assert "no training" not in answer


def test_each_comparison_has_its_machines_and_the_newest_interval() -> None:
    every = {own.name: own for own in comparisons(newest_version())}
    ant = every["Ant, rl_games, Newton, 1,024 environments, 4 optimiser steps"]
    assert (ant.version.name, ant.gpus) == ("2026.12", ("H200", "H100 80GB HBM3"))
    assert min(ant.machines) >= 2
    assert (
        every["Ant, rsl_rl, Newton, 4,096 environments, 20 optimiser steps"].version.name == "2026.11"
    )  # one H100 there alone
    drawn = hardware.chart(newest_version())
    assert sum(comparisons(newest_version())[0].machines) == drawn.markup.count('<th scope="row"')


def test_a_version_of_one_machine_compares_nothing() -> None:
    version = read_version(NEWEST / "h200-x4", name="v")
    assert comparisons(version) == ()
    assert hardware.answer(version).text == "1 machine ran this: H200."
    assert hardware.in_short(version).text == ""


# --- what ran where ---


@cache
def stored() -> tuple[RunRecord, ...]:
    """Every completed run of every set that trained or was of LeRobot."""
    sets = [result_set for version in (committed_version(), newest_version()) for result_set in version.sets]
    records = [record for own in sets for result in own.campaign.results for record in result.completed]
    return tuple(record for record in records if record.case.workload == "train" or record.case.rl_library == "lerobot")


def test_a_cell_has_the_tasks_and_the_most_gpus_of_each_model_that_records_have() -> None:
    headings, *rows = (line.split("\t") for line in hardware.where(newest_version()).text.splitlines())
    assert [row[0] for row in rows] == list(CATALOG.libraries)
    names = {"kitless": "Newton", "ovphysx": "PhysX", "isaacsim": "PhysX and RTX in Isaac Sim"}
    for row in rows:
        for heading, cell in zip(headings[1:-1], row[1:-1], strict=True):
            own = [record for record in stored() if record.case.rl_library == row[0]]
            column = heading.partition(",")[0], "cuda" if heading.endswith("GPUs") else "cpu"
            own = [record for record in own if (names[record.case.stack], record.case.device) == column]
            assert (cell == NOT_MEASURED) == (not own)
            for number, model in re.findall(r"(\d) x (\w+)", cell):
                sizes = [record.case.num_gpus for record in own if model in record.environment.gpus[0].name]
                assert max(sizes) == int(number)


# --- what cannot run: the page has the words of the commands ---
