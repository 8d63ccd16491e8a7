"""Twins: which cases get one, where their results go, the noise budget, and the pairs of a command for some cases."""

import io
import json
import random
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from reports.topics.hardware.page import NOISE_RULE
from suite.campaign.folder import Folder
from suite.campaign.planning.plan import make_plan
from suite.campaign.runs.pair_files import write_all
from suite.campaign.runs.upstream import Pair, folder_of, read_pairs
from suite.campaign.state import Campaign
from suite.campaign.steps import summarise
from suite.matrix.resources import Resources
from suite.records import store
from suite.schema.record import CaseResult, Environment
from suite.statistics.twins import TwinPair, is_twin, is_within, noise_budget, twin_pairs, with_twins
from tests.fixtures.results.generated_results import GPU_HOST, make_case, make_result
from tests.fixtures.runs.asked_options import changed, options_with
from tests.suite.campaign.test_schedule import FIXED, campaign_of


def twin_of(result: CaseResult, *times_s: float) -> CaseResult:
    _, twin = with_twins([result.case])
    return make_result(twin, *times_s)


def test_the_baseline_of_each_series_is_followed_by_its_twin() -> None:
    cases = [make_case("cartpole-strong", world_size=size) for size in (2, 1, 4)]
    cases += [make_case("ant-weak", scaling="weak", world_size=2)]
    ids = [case.case_id for case in with_twins(cases)]
    two, one, four, ant = (case.case_id for case in cases)
    assert ids == [two, one, f"{one}-aa", four, ant, f"{ant}-aa"]
    twin = with_twins(cases)[2]
    assert is_twin(twin)
    assert not is_twin(cases[1])
    control = replace(make_case(), workload="environment_step")
    assert with_twins([control]) == [control]
    assert (twin.series, twin.seed, twin.num_envs) == (cases[1].series, cases[1].seed, cases[1].num_envs)


@pytest.mark.parametrize(
    ("asked", "twins"),
    [
        (
            {"series": ("ant-weak",), "rl_libraries": ("rsl_rl",), "gpus": (2, 4)},
            ["ant-weak/rsl_rl-kitless-n2048-1x2-aa"],
        ),
        ({"case_globs": ("ant-weak/*-n1024-1x1*",)}, ["ant-weak/rl_games-kitless-n1024-1x1-aa"]),
        ({"series": ("ant-weak",), "a_a": False}, []),
    ],
)
def test_a_part_of_a_campaign_has_a_twin_of_its_own_baseline(asked: dict[str, Any], twins: list[str]) -> None:
    """Only patterns of case ids name the twins too."""
    campaign = make_plan(
        Campaign(
            options=options_with(matrix="full", **asked),
            console=Console(file=io.StringIO()),
            machine=GPU_HOST,
            device="cuda",
            resources=Resources(nnodes=1, gpus_per_node=4, cpus_per_node=8),
        )
    )
    assert [item.case.case_id for item in campaign.planned if is_twin(item.case)] == twins
    assert len(campaign.planned) > len(twins)


def test_a_twin_is_no_result(tmp_path: Path) -> None:
    case, twin = with_twins([make_case()])
    folder = Folder(root=tmp_path)
    assert folder.case_path(case) == tmp_path / "cases" / f"{case.case_id}.json"
    assert folder.case_path(twin) == tmp_path / "a_a" / f"{case.case_id}-aa.json"
    assert folder.run_dir(case, 0) != folder.run_dir(twin, 0)


def test_the_noise_budget_is_that_of_the_noisiest_pair() -> None:
    first, second = make_result(make_case(), 1.0, 1.1, 1.2), make_result(make_case("ant-weak", scaling="weak"), 2.0)
    pairs = twin_pairs([first, twin_of(first, 1.122), second, twin_of(second, 1.9)])
    assert [pair.difference for pair in pairs] == pytest.approx([0.02, -0.05])
    assert [(len(pair.times_s), len(pair.twin_times_s)) for pair in pairs] == [(3, 1), (1, 1)]
    assert pairs[1].noise == pytest.approx(1 / 0.95 - 1)  # the slower took so much longer than the other
    assert pairs[0].noise == pytest.approx(0.122)  # had 1.0 been the twin's round, beside 1.1, 1.122 and 1.2
    assert noise_budget(pairs) == pairs[0].noise


def test_noise_is_not_the_luck_of_one_draw() -> None:
    times_s, twin_s = (0.533, 0.364, 0.378), (0.410, 0.377, 0.335)
    pair = TwinPair(case_id="a", times_s=times_s, twin_times_s=twin_s)
    assert pair.difference == pytest.approx(0.377 / 0.378 - 1)  # although rounds differ by half
    assert pair.noise == pytest.approx(0.410 / 0.364 - 1)  # the three fastest, and the others
    assert replace(pair, times_s=twin_s, twin_times_s=times_s).noise == pytest.approx(pair.noise)


@pytest.mark.parametrize(("rounds", "one_of"), [(3, 4), (5, 7)])
def test_how_often_no_difference_lies_beyond_the_noise_is_what_pages_say(rounds: int, one_of: int) -> None:
    assert "in one of four cases with two or three rounds each, and in one of seven with four or five" in NOISE_RULE
    draw = random.Random(rounds)  # noqa: S311

    def times_s() -> tuple[float, ...]:
        return tuple(draw.lognormvariate(0, 0.03) for _ in range(rounds))

    def is_beyond() -> bool:
        pair = TwinPair(case_id="a", times_s=times_s(), twin_times_s=times_s())
        return not is_within(statistics.median(times_s()) / pair.median_s - 1, pair.noise)

    assert sum(is_beyond() for _ in range(1000)) / 1000 == pytest.approx(1 / one_of, abs=0.03)


NOISY, QUIET = make_result(make_case("ant-weak", scaling="weak"), 1.0, 1.2), make_result(make_case(), 2.0, 2.0)
RESULTS = (NOISY, twin_of(NOISY, 1.1, 1.3), QUIET, twin_of(QUIET, 2.0, 2.0))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """All cases stored, with upstream's runs beside both rounds of two of them."""
    folder = Folder(root=tmp_path)
    for result in RESULTS:
        store.write_case(result, folder.case_path(result.case))
    for record in (*NOISY.rounds, *QUIET.rounds):
        store.write_record(record, folder.record_path(record.case, record.round))
        theirs = folder_of(folder.run_dir(record.case, record.round)) / "upstream.json"
        theirs.parent.mkdir()
        theirs.write_text(json.dumps({"iteration_time_s": [1.0] * record.case.iterations}))
    return folder


def noise_of(folder: Folder) -> tuple[float | None, list[str]]:
    stored = json.loads((folder.root / "noise.json").read_text())
    return stored["noise_budget"], [pair["configuration_id"] for pair in stored["pairs"]]


def upstream_of(folder: Folder) -> list[Pair]:
    return list(read_pairs(folder.root / "upstream.json"))


@pytest.mark.usefixtures("plain_case_files")
def test_a_command_for_some_cases_keeps_what_the_others_say(folder: Folder, environment: Environment) -> None:
    twins, beside = write_all(folder)
    assert len(twins) == 2
    assert len(beside) == 4
    before = noise_of(folder)
    assert before[0] == pytest.approx(max(twin.noise for twin in twins))
    campaign = campaign_of(environment, FIXED, (QUIET.case,), upstream=True)
    options = changed(campaign.options, out=folder.root)
    summarise(replace(campaign, options=options, results=RESULTS[2:]))
    assert noise_of(folder) == before
    assert upstream_of(folder) == beside


@pytest.mark.usefixtures("plain_case_files")
def test_pairs_that_are_none_any_more_do_not_stay(folder: Folder, plain_case_files: dict[Path, CaseResult]) -> None:
    write_all(folder)
    for result in RESULTS:
        lost = [replace(record, outcome="crashed", reason="x") for record in result.rounds]
        plain_case_files[folder.case_path(result.case)] = replace(result, rounds=tuple(lost))
    assert write_all(folder) == ((), [])
    assert noise_of(folder) == (None, [])
    assert upstream_of(folder) == []


@pytest.mark.usefixtures("plain_case_files")
def test_a_campaign_without_pairs_has_no_such_files(tmp_path: Path) -> None:
    folder = Folder(root=tmp_path)
    store.write_case(QUIET, folder.case_path(QUIET.case))
    assert write_all(folder) == ((), [])
    assert [path.name for path in tmp_path.iterdir()] == ["cases"]
