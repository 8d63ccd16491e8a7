"""``nox -s store``: a campaign that was killed becomes results, and can still go on where its machine is there."""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.__main__ import main
from suite.campaign.folder import Folder
from suite.commands.store import GONE, store_finished
from suite.errors import CampaignError, StoreError
from suite.records import store
from suite.records.folders import PLAN_FILE, read_plan
from suite.replay.session import replay
from suite.schema.rank_protocol import CONFIGURATION_FILE, text_of
from suite.schema.record import Case, CaseResult
from suite.statistics.stopping_rule import CUT_OFF
from tests.fixtures.results.generated_results import failed_result, make_case, make_result
from tests.fixtures.results.stored_rounds import stored_round
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


def test_cases_are_stored_with_the_rounds_that_ended_and_later_ones_are_added(tmp_path: Path) -> None:
    for index in range(2):
        write_round(tmp_path, ANT, index)
    write_round(tmp_path, OTHER, 0)
    write_identity(tmp_path)
    not_here = failed_result(make_case("ant-weak", world_size=8), outcome="skipped", reason="needs 8 GPUs")
    store.write_cases({Folder(root=tmp_path).case_path(not_here.case): not_here})
    plan = {"configurations": {ANT.case_id: 3, not_here.case.case_id: 0, "never": 3}}
    (tmp_path / PLAN_FILE).write_text(json.dumps(plan), encoding="utf-8")

    def stored() -> dict[str, tuple[int, str | None]]:
        return {result.case.case_id: (len(result.rounds), result.ended_because) for result in store_finished(tmp_path)}

    first = {ANT.case_id: (2, f"{CUT_OFF}: 2 of 3 rounds"), OTHER.case_id: (1, f"{CUT_OFF}: 1 of 3 rounds")}
    path = Folder(root=tmp_path).case_path(ANT)
    assert stored() == first
    assert read_plan(tmp_path) == {**plan, "missing": {"never": GONE}}
    before = path.read_bytes()
    assert stored() == first
    assert path.read_bytes() == before
    assert not list(path.parent.glob("*.superseded-*"))
    write_round(tmp_path, ANT, 2)
    assert stored() == {**first, ANT.case_id: (3, "as many rounds as were asked for")}
    assert path.with_name(f"{path.name}.superseded-1").read_bytes() == before
    assert {result.case.case_id: len(result.rounds) for result in store.load_results(tmp_path)} == {
        ANT.case_id: 3,
        OTHER.case_id: 1,
        not_here.case.case_id: 1,
    }
    del plan["configurations"]["never"]
    (tmp_path / PLAN_FILE).write_text(json.dumps({**plan, "missing": {"never": GONE}}), encoding="utf-8")
    stored()
    assert read_plan(tmp_path) == plan


def test_of_runs_of_learning_rewards_are_printed_and_no_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = make_case("ant-weak", variant="learning", device="cuda", only_learning=True)
    folder = Folder(root=tmp_path)
    for record in make_result(case, 0.5, 0.6).rounds:
        store.write_record(record, folder.record_path(case, record.round))
    write_identity(tmp_path)
    assert main(["store", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    (row,) = (line.split() for line in printed.splitlines() if line.startswith(f" {case.case_id}"))
    assert row[1:] == ["1", "128", "2/2", "3.57", "completed"]
    assert "s/iteration" not in printed


def in_the_place_of_another(root: Path) -> None:
    path = write_round(root, ANT, 0)
    shutil.copytree(path.parent, path.parent.with_name("r1"))


def of_another_case_of_the_same_name(root: Path) -> None:
    write_round(root, ANT, 0)
    write_round(root, replace(ANT, seed=7, minibatch_size=64), 1)


def two_stored(root: Path) -> Path:
    """The record of the second round."""
    paths = [write_round(root, ANT, index) for index in range(2)]
    store_finished(root)
    return paths[1]


def damaged(root: Path) -> None:
    path = two_stored(root)
    path.write_bytes(path.read_bytes()[:99])


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (in_the_place_of_another, r"r1/record\.json is of .*, run 0, and belongs at .*r0/record\.json"),
        (
            of_another_case_of_the_same_name,
            r"r1/record\.json is the record of run 1 of .* in minibatch_size, seed",
        ),
        (lambda root: shutil.rmtree(two_stored(root).parent), r"has 2 runs, but .*/r1/record\.json is missing\. Put"),
        (damaged, "Move the file away, and its result below cases/"),
        (lambda root: (root / "raw").mkdir(), r"No run below .* has ended"),
        (lambda _: None, "has no folder raw"),
    ],
)
def test_what_cannot_be_stored_is_named_and_what_is_stored_stays(
    tmp_path: Path, prepare: Callable[[Path], object], message: str
) -> None:
    write_identity(tmp_path)
    prepare(tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "cases").rglob("*") if path.is_file()}
    with pytest.raises(StoreError, match=message):
        store_finished(tmp_path)
    assert {path: path.read_bytes() for path in (tmp_path / "cases").rglob("*") if path.is_file()} == before
    if prepare is damaged:  # its advice works
        path = Folder(root=tmp_path).record_path(ANT, 1)
        path.rename(path.with_suffix(".damaged"))
        Folder(root=tmp_path).case_path(ANT).unlink()
        assert [[record.round for record in result.rounds] for result in store_finished(tmp_path)] == [[0]]


def test_rounds_are_stored_beside_a_campaign_file_that_was_cut_short(tmp_path: Path) -> None:
    """``bench`` refuses such a folder, and names this command. One without that file is nobody's."""
    write_round(tmp_path, ANT, 0)
    with pytest.raises(CampaignError, match=r"but no campaign\.json"):
        store_finished(tmp_path)
    (tmp_path / "campaign.json").write_text('{"rounds": 3, "prec', encoding="utf-8")
    (result,) = store_finished(tmp_path)
    assert result.ended_because == "stored after 1 round: campaign.json, which had the rule, cannot be read"


def test_rounds_that_may_not_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreadable rounds were once skipped, as if they had not ended."""
    path = write_round(tmp_path, ANT, 0)
    write_identity(tmp_path)
    for folder in (tmp_path / "raw", path.parent.parent):
        with monkeypatch.context() as patched:
            deny(patched, folder)
            with pytest.raises(StoreError, match=re.escape(f"{folder} cannot be read: Permission denied")):
                store_finished(tmp_path)


def test_a_killed_campaign_is_stored_with_what_it_has_and_by_the_rule_that_it_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_round(tmp_path, ANT, 0)
    left = Folder(root=tmp_path).run_dir(ANT, 1)
    left.mkdir()
    (left / CONFIGURATION_FILE).write_text(text_of(ANT), encoding="utf-8")
    write_identity(tmp_path, rounds=1, precision=1e-6, max_rounds=2)
    assert main(["store", str(tmp_path)]) == 0
    output = capsys.readouterr().out
    assert f"raw/{ANT.case_id}/r1." in output
    assert "Stored: 1 configuration, 1 run." in output
    stored = store.read_case(Folder(root=tmp_path).case_path(ANT))
    assert [record.round for record in stored.completed] == [0]
    assert (stored.ended_because or "").startswith(f"{CUT_OFF}: no interval of the time from 1 round (")


def test_all_cases_are_stored_by_one_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pytest session takes half a second to start, which was most of the time of many cases."""
    sessions: list[int] = []

    def counted_replay(results: Sequence[CaseResult]) -> list[dict[str, Any]]:
        sessions.append(len(results))
        return replay(results)

    monkeypatch.setattr(store, "replay", counted_replay)
    for number in range(20):
        write_round(tmp_path, replace(ANT, case_id=f"ant/rsl_rl-kitless-n{number}-1x1"), 0)
    write_identity(tmp_path)
    store_finished(tmp_path)
    assert sessions == [20]
    for path in (tmp_path / "cases").rglob("*.json"):
        (benchmark,) = json.loads(path.read_bytes())["benchmarks"]
        assert benchmark["extra_info"]["configuration_id"] == store.read_case(path).case.case_id
