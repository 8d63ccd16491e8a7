"""``nox -s store``: a campaign that was killed becomes results, and can still go on where its machine is there."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.__main__ import main
from suite.campaign.folder import Folder
from suite.campaign.schedule import ended_records
from suite.commands.store import store_finished
from suite.errors import CampaignError, StoreError
from suite.records import store
from suite.replay.session import Draft, replay
from suite.schema.configuration_file import CONFIGURATION_FILE, text_of
from suite.schema.record import Case
from suite.statistics.stopping_rule import CUT_OFF
from tests.fixtures.results.stored_rounds import stored_round
from tests.fixtures.runs.bench_runs import CASE, Bench, Stage
from tests.fixtures.stand_ins.denied_folders import deny
from tests.suite.matrix.test_plan import ANT as PLANNED

ANT = replace(PLANNED, iterations=3)  # as many as a stored round has
OTHER = replace(ANT, case_id="ant/rsl_rl-kitless-n4096-1x1", rl_library="rsl_rl")


def write_round(root: Path, case: Case, index: int) -> Path:
    path = Folder(root=root).record_path(case, index)
    store.write_record(stored_round(index, case=case), path)
    (path.parent / CONFIGURATION_FILE).write_text(text_of(case), encoding="utf-8")
    return path


def write_identity(root: Path, **rule: object) -> None:
    identity = {"rounds": 3, "precision": None, "max_rounds": None, **rule}
    (root / "campaign.json").write_text(json.dumps(identity), encoding="utf-8")


def test_cases_are_stored_with_the_rounds_that_ended(tmp_path: Path) -> None:
    for index in range(3):
        write_round(tmp_path, ANT, index)
    write_round(tmp_path, OTHER, 0)
    write_identity(tmp_path)
    because = {one.case.case_id: (len(one.rounds), one.ended_because) for one in store_finished(tmp_path)}
    assert because == {
        ANT.case_id: (3, "as many rounds as were asked for"),
        OTHER.case_id: (1, f"{CUT_OFF}: 1 of 3 rounds"),
    }
    assert {one.case.case_id: len(one.rounds) for one in store.load_results(tmp_path)} == {
        ANT.case_id: 3,
        OTHER.case_id: 1,
    }


def test_what_was_stored_stays_and_later_rounds_are_added(tmp_path: Path) -> None:
    write_round(tmp_path, ANT, 0)
    write_identity(tmp_path)
    store_finished(tmp_path)
    path = Folder(root=tmp_path).case_path(ANT)
    first = path.read_bytes()
    store_finished(tmp_path)
    assert path.read_bytes() == first
    assert not list(path.parent.glob("*.superseded-*"))
    write_round(tmp_path, ANT, 1)
    (result,) = store_finished(tmp_path)
    assert len(result.rounds) == 2
    assert path.with_name(f"{path.name}.superseded-1").read_bytes() == first


def test_a_record_in_another_rounds_place_is_named(tmp_path: Path) -> None:
    path = write_round(tmp_path, ANT, 0)
    write_identity(tmp_path)
    other = path.parent.with_name("r1")
    shutil.copytree(path.parent, other)
    with pytest.raises(StoreError, match=r"r1/record\.json is of .*, round 0, and belongs at .*r0/record\.json"):
        store_finished(tmp_path)
    assert not (tmp_path / "cases").exists()


def test_rounds_are_stored_beside_a_campaign_file_that_was_cut_short(tmp_path: Path) -> None:
    """``bench`` refuses such a folder, and names this command."""
    write_round(tmp_path, ANT, 0)
    (tmp_path / "campaign.json").write_text('{"rounds": 3, "prec', encoding="utf-8")
    (result,) = store_finished(tmp_path)
    assert result.ended_because == "stored after 1 round: campaign.json, which had the rule, cannot be read"


def test_a_record_of_another_case_of_the_same_name_is_named(tmp_path: Path) -> None:
    """This was once reported as a fault of the program."""
    write_identity(tmp_path)
    write_round(tmp_path, ANT, 0)
    other = write_round(tmp_path, replace(ANT, seed=7, minibatch_size=64), 1)
    said = rf"^{other} is the record of round 1 of {ANT.case_id} that differs in minibatch_size, seed, where round 1 of"
    with pytest.raises(StoreError, match=said) as caught:
        store_finished(tmp_path)
    assert "move it away and run again: only this round is repeated" in str(caught.value)
    with pytest.raises(StoreError, match=said):
        ended_records(Folder(root=tmp_path), ANT)


def test_stored_rounds_are_never_taken_away(tmp_path: Path) -> None:
    for index in range(2):
        write_round(tmp_path, ANT, index)
    write_identity(tmp_path)
    store_finished(tmp_path)
    path = Folder(root=tmp_path).case_path(ANT)
    first = path.read_bytes()
    shutil.rmtree(Folder(root=tmp_path).run_dir(ANT, 1))
    with pytest.raises(StoreError, match=r"has 2 rounds, but .*/r1/record\.json is missing\. Put OUT/raw back"):
        store_finished(tmp_path)
    assert path.read_bytes() == first


def test_rounds_that_may_not_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreadable rounds were once skipped, as if they had not ended."""
    path = write_round(tmp_path, ANT, 0)
    write_identity(tmp_path)
    for folder in (tmp_path / "raw", path.parent.parent):
        with monkeypatch.context() as patched:
            deny(patched, folder)
            with pytest.raises(StoreError, match=re.escape(f"{folder} cannot be read: Permission denied")):
                store_finished(tmp_path)
    assert len(store_finished(tmp_path)) == 1


@pytest.fixture
def cut_off(finished_campaign: Stage, tmp_path: Path) -> Bench:
    """The campaign as its death in the last round left it: without that round's record, and its case not stored."""
    shutil.copytree(finished_campaign.bench.out, tmp_path / "out")
    bench = Bench(matrix=finished_campaign.bench.matrix, out=tmp_path / "out")
    (bench.run_dir(CASE, 1) / "record.json").unlink()
    bench.case_path(CASE).unlink()
    return bench


@pytest.mark.worker
def test_a_killed_campaign_is_stored_elsewhere(cut_off: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["store", str(cut_off.out)]) == 0
    said = capsys.readouterr().out
    assert f"Left out, as they have not ended: raw/{CASE}/r1." in said
    assert "Stored: 1 case, 1 round." in said
    before = store.read_case(cut_off.case_path(CASE))
    assert [record.round for record in before.completed] == [0]
    assert before.ended_because is not None
    assert before.ended_because.startswith(f"{CUT_OFF}: no interval of the time from 1 round (")


def test_the_advice_for_a_damaged_record_of_a_stored_case_works(tmp_path: Path) -> None:
    for index in range(2):
        path = write_round(tmp_path, ANT, index)
    write_identity(tmp_path)
    store_finished(tmp_path)
    path.write_bytes(path.read_bytes()[:99])
    with pytest.raises(StoreError, match="Move the file away, and the stored case of the round below cases/"):
        store_finished(tmp_path)
    path.rename(path.with_suffix(".damaged"))
    Folder(root=tmp_path).case_path(ANT).unlink()
    (result,) = store_finished(tmp_path)
    assert [record.round for record in result.rounds] == [0]


def test_nothing_to_store_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no folder raw"):
        store_finished(tmp_path)
    (tmp_path / "raw").mkdir()
    with pytest.raises(StoreError, match=r"No round below .* has ended"):
        store_finished(tmp_path)


def test_a_folder_of_nobody_is_refused(tmp_path: Path) -> None:
    write_round(tmp_path, ANT, 0)
    with pytest.raises(CampaignError, match=r"but no campaign\.json"):
        store_finished(tmp_path)


def test_all_cases_are_stored_by_one_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pytest session takes half a second to start, which was most of the time of many cases."""
    sessions: list[int] = []

    def counted_replay(drafts: Sequence[Draft]) -> list[dict[str, Any]]:
        sessions.append(len(drafts))
        return replay(drafts)

    monkeypatch.setattr(store, "replay", counted_replay)
    for number in range(20):
        write_round(tmp_path, replace(ANT, case_id=f"ant/rsl_rl-kitless-n{number}-1x1"), 0)
    write_identity(tmp_path)
    store_finished(tmp_path)
    assert sessions == [20]
    for path in (tmp_path / "cases").rglob("*.json"):
        (benchmark,) = json.loads(path.read_bytes())["benchmarks"]
        assert benchmark["extra_info"]["configuration_id"] == store.read_case(path).case.case_id
