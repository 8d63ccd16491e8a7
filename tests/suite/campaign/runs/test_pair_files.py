"""What a campaign's stored cases say in pairs, when a command ran only some of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from suite.campaign.folder import Folder
from suite.campaign.runs.pair_files import write_all
from suite.campaign.runs.upstream import Pair, folder_of, read_pairs
from suite.campaign.steps import summarise
from suite.records import store
from suite.schema.record import CaseResult, Environment
from tests.fixtures.results.generated_results import make_case, make_result
from tests.fixtures.runs.asked_options import changed
from tests.suite.campaign.runs.test_repeat_noise import twin_of
from tests.suite.campaign.test_schedule import FIXED, campaign_of

pytestmark = pytest.mark.usefixtures("plain_case_files")
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


def test_pairs_that_are_none_any_more_do_not_stay(folder: Folder, plain_case_files: dict[Path, CaseResult]) -> None:
    write_all(folder)
    for result in RESULTS:
        lost = [replace(record, outcome="crashed", reason="x") for record in result.rounds]
        plain_case_files[folder.case_path(result.case)] = replace(result, rounds=tuple(lost))
    assert write_all(folder) == ((), [])
    assert noise_of(folder) == (None, [])
    assert upstream_of(folder) == []


def test_a_campaign_without_pairs_has_no_such_files(tmp_path: Path) -> None:
    folder = Folder(root=tmp_path)
    store.write_case(QUIET, folder.case_path(QUIET.case))
    assert write_all(folder) == ((), [])
    assert [path.name for path in tmp_path.iterdir()] == ["cases"]
