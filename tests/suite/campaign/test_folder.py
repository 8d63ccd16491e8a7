import errno
import fcntl
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from suite.campaign import folder as folder_module
from suite.campaign import record_round as by_hand
from suite.campaign import steps
from suite.campaign.folder import Folder, require_identity
from suite.campaign.identity import opened
from suite.errors import CampaignError, StoreError, WorkerEnvironmentError
from suite.files.cache import locked
from suite.files.paths import set_aside
from suite.records import store
from suite.schema.rank_protocol import CONFIGURATION_FILE, text_of
from suite.schema.record import CaseResult, Environment, RunRecord
from suite.schema.stored import plain
from suite.statistics.stopping_rule import Rule
from tests.conftest import CaseMaker
from tests.fixtures.results.generated_results import make_case, make_record
from tests.fixtures.runs.asked_options import changed
from tests.suite.campaign.test_schedule import campaign_of
from tests.suite.launch.test_manifests import NODES

IDENTITY = {"matrix": "smoke", "gpus": ["H200"], "rounds": 3, "precision": None, "max_rounds": None}


def test_a_folder_belongs_to_one_campaign(tmp_path: Path) -> None:
    with opened(tmp_path / "out", IDENTITY):
        pass
    with opened(tmp_path / "out", IDENTITY) as again:
        assert json.loads((again.root / "campaign.json").read_text()) == IDENTITY
    with (
        pytest.raises(CampaignError, match=r"gpus: there \['H200'\], now \['L40'\]"),
        opened(tmp_path / "out", {**IDENTITY, "gpus": ["L40"]}),
    ):
        pass


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    with (
        opened(tmp_path, IDENTITY),
        pytest.raises(CampaignError, match="Another labscale process"),
        opened(tmp_path, IDENTITY),
    ):
        pass


def test_file_systems_without_locks_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))  # Lustre mounted with noflock

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(CampaignError, match=rf"{tmp_path} .*--out"),
        opened(tmp_path, IDENTITY),
    ):
        pass
    with (
        pytest.raises(WorkerEnvironmentError, match=r"x\.lock .*LABSCALE_CACHE"),
        locked(tmp_path / "x.lock", print),
    ):
        pass


@pytest.mark.parametrize(
    "text", ['{"matrix": ', "[]", "null", "[" * 100_000, '{"rounds": 0}', '{"precision": NaN}', '{"rounds": "3"}']
)
def test_a_corrupt_campaign_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "campaign.json").write_text(text)
    with pytest.raises(CampaignError, match=r"campaign\.json .*nox -s store"), opened(tmp_path, IDENTITY):
        pass
    assert (tmp_path / "campaign.json").read_text() == text


def stored(root: Path, record: RunRecord, *, how: str) -> Path:
    """``record`` below ``root`` as a published case, as a round of a campaign, or as something that cannot be read."""
    folder = Folder(root=root)
    if how == "case":
        path = folder.case_path(record.case)
        store.write_cases({path: CaseResult(case=record.case, rounds=(record,))})
    else:
        path = folder.record_path(record.case, record.round)
        path.parent.mkdir(parents=True)
        store.write_record(record, path)
        if how == "damaged":
            path.write_text("[]", encoding="utf-8")
    return path


@pytest.mark.parametrize("how", ["case", "round", "damaged"])
@pytest.mark.parametrize("nnodes", [1, 2])
def test_results_that_say_not_whose_they_are_stay_as_they_are(
    tmp_path: Path, environment: Environment, how: str, nnodes: int
) -> None:
    path = stored(tmp_path, make_record(make_case(nnodes=nnodes, world_size=2)), how=how)
    before = {found: found.read_bytes() for found in tmp_path.rglob("*") if found.is_file()}
    message = str(path.relative_to(tmp_path))
    with pytest.raises(CampaignError, match=message), opened(tmp_path, IDENTITY):
        pass
    campaign = campaign_of(environment, Rule(rounds=1))
    with pytest.raises(CampaignError, match=message):  # a node that Slurm gives is described in that folder
        steps.provision(replace(campaign, options=changed(campaign.options, out=tmp_path, launcher="slurm")))
    assert {found: found.read_bytes() for found in tmp_path.rglob("*") if found.is_file()} == before


def test_rounds_of_several_nodes_may_end_before_bench_begins_the_others(tmp_path: Path) -> None:
    """A user or Kubernetes starts these rounds outside a campaign, in the folder that bench uses."""
    case = make_case(nnodes=2, world_size=2)
    run_dir = Folder(root=tmp_path).run_dir(case, 0)
    run_dir.mkdir(parents=True)
    (run_dir / CONFIGURATION_FILE).write_text(text_of(case), encoding="utf-8")
    require_identity(tmp_path)  # it is planned, and nothing has ended

    by_hand.record(run_dir, by_hand.Ended(rounds=1, exit_code=1, started_unix_s=0.0))
    assert Folder(root=tmp_path).case_path(case).exists()
    with opened(tmp_path, IDENTITY) as folder:
        assert json.loads((folder.root / "campaign.json").read_text()) == IDENTITY


def test_what_is_set_aside_is_kept_and_is_no_result(tmp_path: Path, make_case: CaseMaker) -> None:
    folder, case = Folder(root=tmp_path), make_case()
    path = folder.case_path(case)
    assert set_aside(path, "superseded") is None
    names = []
    for content in ("first", "second"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        aside = set_aside(path, "superseded")
        assert aside
        names.append(aside.name)
        assert aside.read_text() == content
    assert names == [f"{path.name}.superseded-1", f"{path.name}.superseded-2"]
    assert not list(tmp_path.rglob("*.json"))


def test_too_little_space_is_said_before_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folder_module, "MIN_FREE_GB", 1e9)
    with pytest.raises(CampaignError, match="GB free; a round needs"):
        Folder(root=tmp_path).require_space()


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        ({"configuration_id": "/".join(["a"] * 5000)}, "r0"),
        ({}, "r00"),
        ({}, "other"),
        ({"nnodes": 0}, "r0"),
        ({"nnodes": 10**10}, "r0"),  # looking for each of its ranks took all memory
    ],
)
def test_a_folder_that_is_not_of_its_case_gets_no_record(
    changes: dict[str, object], folder: str, tmp_path: Path
) -> None:
    run_dir = tmp_path / "raw" / NODES.case.case_id / folder
    run_dir.mkdir(parents=True)
    (run_dir / CONFIGURATION_FILE).write_text(json.dumps(plain(NODES.case) | changes), encoding="utf-8")
    with pytest.raises(StoreError):
        by_hand.record(run_dir, by_hand.Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))
    assert [path.name for path in run_dir.rglob("*")] == [CONFIGURATION_FILE]
