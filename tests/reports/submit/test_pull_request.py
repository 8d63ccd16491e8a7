"""What a campaign's results say of how they were measured, and names of sets, from sets in git."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reports.sets.version import read_version
from reports.submit.placing import manifest_entry, target_of
from reports.submit.pull_request import warnings
from reports.submit.source import Source
from suite.errors import StoreError
from suite.statistics.stopping_rule import CUT_OFF
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.learning_results import LEARNING_SET, write_learning


def source_of(name: str) -> Source:
    return Source(folder=RESULTS / name, identity={}, version=read_version(RESULTS / name, name=""))


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("h200-learning-1", "Other processes used up to 26"),
        ("h200-x4", "Other processes used an unknown share of the CPU time in"),
        ("h200-x4", "Whether other processes were on the GPUs is not known of"),
        ("h200-memory", "on the GPUs before"),
    ],
)
def test_what_others_used_of_the_machine_is_said(name: str, warning: str) -> None:
    assert warning in " ".join(warnings(source_of(name)))


def test_runs_that_share_a_machine_on_purpose_are_no_warning(tmp_path: Path) -> None:
    write_learning(tmp_path)
    folder = tmp_path / LEARNING_SET
    text = " ".join(warnings(Source(folder=folder, identity={}, version=read_version(folder, name=""))))
    assert "the CPU time" not in text


def test_runs_that_failed_and_configurations_that_were_cut_off_are_said() -> None:
    source = source_of("h100-memory")
    text = " ".join(warnings(source))
    failed = [record for record in source.begun if record.outcome != "completed"]
    assert failed
    assert f"{len(failed)} of {len(source.begun)} runs did not complete ({failed[0].outcome})." in text
    assert "cut off" not in text
    campaign = source.result_set.campaign
    first, *others = campaign.results
    cut = replace(campaign, results=(replace(first, ended_because=f"{CUT_OFF}: 1 of 3 rounds"), *others))
    cut_off = replace(source, version=replace(source.version, sets=(replace(source.result_set, campaign=cut),)))
    assert "1 configuration is cut off: fewer runs are stored than were asked for." in warnings(cut_off)


def test_a_title_that_is_taken_gets_the_time_of_day(tmp_path: Path) -> None:
    place = source_of("h100-x2-first").place
    target = target_of(place, into=tmp_path)
    assert target.version.name == f"{datetime.now(UTC):%Y.%m}"
    target.folder.mkdir(parents=True)
    (target.version / "report.toml").write_text(manifest_entry(target.entry, is_first=True))
    assert target_of(place, into=tmp_path, name="other").entry.title == f"{target.entry.title}, 03:51 UTC"
    with pytest.raises(StoreError):
        target_of(place, into=tmp_path)


def test_a_version_is_the_newest_or_of_this_month(tmp_path: Path) -> None:
    place = source_of("h100-x2-first").place
    for name in ("2026.10", "2027.02", "allowed_signers", "notes"):
        (tmp_path / name).mkdir()
    assert target_of(place, into=tmp_path).version.name == "2027.02"
    assert target_of(place, into=tmp_path, version="2027.03").version.name == "2027.03"
    assert target_of(place, into=tmp_path, version="new").version.name == f"{datetime.now(UTC):%Y.%m}"
