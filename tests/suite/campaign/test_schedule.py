"""Which rounds run and in which order, on a campaign's real folder: killed at any moment, with more rounds later."""

import contextlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

import pytest

from suite.campaign import cases as cases_module
from suite.campaign.cases import note_plan, require_raw, set_failures_aside, store_if_complete
from suite.campaign.folder import Folder
from suite.campaign.schedule import blocks_to_run, known_rounds
from suite.campaign.state import Campaign
from suite.errors import StoreError
from suite.files.paths import set_aside
from suite.records import store
from suite.schema.record import Case, CaseResult, Outcome
from suite.statistics.stopping_rule import Rule
from tests.fixtures.results.generated_results import CPU_HOST, make_case, make_record
from tests.fixtures.runs.simulated_campaign import campaign_of as simulated_campaign
from tests.fixtures.runs.simulated_host import SimulatedHost

QUIET, LOUD, FIRST = (
    make_case("ant-weak", scaling="weak"),
    make_case("cartpole-strong"),
    make_case("cartpole-strong", num_envs_global=64),
)
CASES = (QUIET, LOUD, FIRST)
FIXED, ADAPTIVE = Rule(rounds=3), Rule(rounds=2, precision=0.01, max_rounds=8)
MORE, LONGER = Rule(rounds=5), Rule(rounds=2, precision=0.01, max_rounds=10)
Ran = list[tuple[str, int]]


def time_s(case: Case, index: int) -> float:
    return 1.0 if case != LOUD else 1.0 + 0.05 * (index % 4)


pytestmark = pytest.mark.usefixtures("plain_case_files")


def campaign_of(rule: Rule, cases: Sequence[Case] = CASES, **options: bool) -> Campaign:
    return simulated_campaign(SimulatedHost(), cases, rule=rule, machine=CPU_HOST, device="cpu", **options)


def run(
    campaign: Campaign,
    root: Path,
    *,
    kill_after: int | None = None,
    failing: Mapping[tuple[str, int], Outcome] | None = None,
) -> Ran:
    """Run like ``run_all``, but write a record instead of training; ``kill_after`` stops before that record."""
    folder, ran = Folder(root=root), Ran()
    require_raw(campaign, folder)
    for item, index in chain.from_iterable(blocks_to_run(campaign, folder)):
        if kill_after == len(ran):
            return ran
        case = item.case
        outcome = (failing or {}).get((case.case_id, index), "completed")
        reason = None if outcome == "completed" else "x"
        record = make_record(case, index=index, iteration_time_s=time_s(case, index), outcome=outcome, reason=reason)
        store.write_record(record, folder.record_path(case, index))
        ran.append((case.case_id, index))
        store_if_complete(campaign, folder, item)
    for item in campaign.planned:
        assert store_if_complete(campaign, folder, item) is not None
    return ran


def stored(campaign: Campaign, root: Path) -> dict[str, CaseResult]:
    folder = Folder(root=root)
    return {item.case.case_id: store.read_case(folder.case_path(item.case)) for item in campaign.planned}


def test_rounds_interleave_and_their_order_rotates(tmp_path: Path) -> None:
    ran = run(campaign_of(FIXED), tmp_path)
    quiet, loud, first = (case.case_id for case in CASES)
    assert ran == [
        (quiet, 0), (loud, 0), (first, 0),
        (loud, 1), (first, 1), (quiet, 1),
        (first, 2), (quiet, 2), (loud, 2),
    ]  # fmt: skip


def test_each_case_goes_on_until_it_is_decided(tmp_path: Path) -> None:
    campaign = campaign_of(ADAPTIVE)
    ran = run(campaign, tmp_path)
    results = stored(campaign, tmp_path)
    assert {case_id: len(result.rounds) for case_id, result in results.items()} == {
        QUIET.case_id: 3,
        LOUD.case_id: 8,
        FIRST.case_id: 8,  # its ratio to the loud baseline
    }
    assert len(ran) == 19
    assert {index for case_id, index in ran if case_id == LOUD.case_id} == set(range(8))
    why = {case_id: (result.ended_because or "").partition(":")[0] for case_id, result in results.items()}
    assert why == {
        QUIET.case_id: "precise enough",
        LOUD.case_id: "the budget of 8 rounds is spent",
        FIRST.case_id: "the budget of 8 rounds is spent",
    }
    for case in (LOUD, FIRST):  # the baseline goes on for it too
        assert "the ratio to the baseline is known to" in (results[case.case_id].ended_because or "")
    assert "the time is known to" in (results[QUIET.case_id].ended_because or "")
    folder = Folder(root=tmp_path)
    for case in CASES:  # killed between a record and its case, nothing runs again
        folder.case_path(case).unlink()
    assert (list(blocks_to_run(campaign, folder)), known_rounds(campaign, folder)) == ([], [])


@pytest.mark.parametrize(
    ("less", "more"),
    [(None, FIXED), (None, ADAPTIVE), (FIXED, MORE), (ADAPTIVE, LONGER), (FIXED, replace(LONGER, rounds=4))],
    ids=["exact", "until precise", "more", "longer", "until precise after exact"],
)
def test_killed_after_every_round_it_goes_on_to_the_end_of_one_that_never_was(
    tmp_path: Path, less: Rule | None, more: Rule
) -> None:
    """Also where a campaign by a smaller rule was finished before: that is the end of the larger one at once."""
    campaign = campaign_of(more)
    whole = run(campaign, tmp_path / "whole")
    root, before = tmp_path / "killed", dict[str, CaseResult]()
    if less is not None:
        run(campaign_of(less), root)
        before = stored(campaign, root)
    killed = Ran()
    while added := run(campaign, root, kill_after=1):
        killed += added
        if more is MORE and len(killed) == 1:
            assert stored(campaign, root) == before  # until all its new rounds are there
    assert set(killed) == {
        (case_id, index) for case_id, index in whole if not before or index >= len(before[case_id].rounds)
    }
    assert run(campaign, root) == []
    for case_id, result in stored(campaign, root).items():
        at_once = stored(campaign, tmp_path / "whole")[case_id]
        assert (result.rounds, result.ended_because) == (at_once.rounds, at_once.ended_because)
        if before:
            assert result.rounds[: len(before[case_id].rounds)] == before[case_id].rounds


def test_when_time_is_over_the_rounds_of_the_matrix_still_run(tmp_path: Path) -> None:
    over = replace(campaign_of(replace(ADAPTIVE, budget_s=60.0)), started_s=-1e9)
    assert len(run(over, tmp_path)) == 6
    for result in stored(over, tmp_path).values():
        assert result.ended_because is not None
        what = "time" if result.case == QUIET else "ratio to the baseline"
        assert result.ended_because.startswith(f"the budget of 1 minute is spent: no interval of the {what} from 2")
    again = campaign_of(replace(ADAPTIVE, budget_s=60.0))
    assert len(run(again, tmp_path)) == 19 - 6  # each command has its own time


def test_failed_rounds_get_another_attempt_and_the_case_is_decided_anew(tmp_path: Path) -> None:
    campaign, folder = campaign_of(ADAPTIVE, (QUIET,), retry_failed=True), Folder(root=tmp_path)
    assert len(run(campaign, tmp_path, failing={(QUIET.case_id, 1): "crashed", (QUIET.case_id, 2): "hung"})) == 5
    set_failures_aside(campaign, folder)
    assert folder.finished(QUIET) == [0, 3, 4]
    assert run(campaign, tmp_path) == [(QUIET.case_id, 1), (QUIET.case_id, 2)]
    (result,) = stored(campaign, tmp_path).values()
    assert [record.round for record in result.completed] == [*range(5)]
    assert result.ended_because is not None
    assert result.ended_because.startswith("precise enough")


def test_killed_while_failures_are_set_aside_they_are_still_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing: dict[tuple[str, int], Outcome] = {(QUIET.case_id, 0): "crashed", (QUIET.case_id, 1): "hung"}
    for renames in range(4):
        root = tmp_path / str(renames)
        campaign = campaign_of(FIXED, (QUIET,), retry_failed=True)
        run(campaign, root, failing=failing)
        with monkeypatch.context() as patch:
            patch.setattr(cases_module, "set_aside", dies_after(renames))
            with contextlib.suppress(SystemExit):
                set_failures_aside(campaign, Folder(root=root))
        set_failures_aside(campaign, Folder(root=root))
        assert run(campaign, root) == [(QUIET.case_id, 0), (QUIET.case_id, 1)]
        assert all(record.outcome == "completed" for record in stored(campaign, root)[QUIET.case_id].rounds)


def dies_after(renames: int) -> Callable[[Path, str], object]:
    """``set_aside`` of a process that is killed after so many."""
    left = iter(range(renames))

    def until_then(path: Path, why: str) -> object:
        if next(left, None) is None:
            raise SystemExit
        return set_aside(path, why)

    return until_then


def test_the_plan_of_a_folder_names_the_cases_of_all_commands(tmp_path: Path) -> None:
    def planned() -> dict[str, int]:
        rounds: dict[str, int] = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))["configurations"]
        return rounds

    folder = Folder(root=tmp_path)
    run(campaign_of(FIXED, (QUIET,)), tmp_path)
    quiet = campaign_of(FIXED, (QUIET,))
    store_if_complete(quiet, folder, quiet.planned[0])  # and its plan was removed
    loud = campaign_of(ADAPTIVE, (LOUD,))
    note_plan(loud, folder)
    assert planned() == {QUIET.case_id: 0, LOUD.case_id: ADAPTIVE.rounds}
    unable = replace(campaign_of(FIXED, (FIRST,)).planned[0], infeasible="no GPU")
    note_plan(replace(quiet, planned=(*quiet.planned, unable)), folder)
    assert planned() == {QUIET.case_id: FIXED.rounds, LOUD.case_id: ADAPTIVE.rounds, FIRST.case_id: 0}
    written = (tmp_path / "plan.json").stat().st_mtime_ns
    note_plan(loud, folder)
    assert (tmp_path / "plan.json").stat().st_mtime_ns == written


@pytest.mark.parametrize("failed", [1, 3, 4])
def test_what_a_narrower_command_added_is_kept_when_failures_are_tried_again(tmp_path: Path, failed: int) -> None:
    """Five rounds of one case, three by the rule of all, which is that of the command that tries again."""
    few, whole = campaign_of(Rule(rounds=5), (LOUD,)), campaign_of(FIXED, retry_failed=True)
    run(few, tmp_path, failing={(LOUD.case_id, failed): "crashed"})
    set_failures_aside(whole, Folder(root=tmp_path))
    again = [failed] if failed < 4 else []  # after the last that is left, the rule asks for no other
    assert [index for case_id, index in run(whole, tmp_path) if case_id == LOUD.case_id] == again
    kept = stored(whole, tmp_path)[LOUD.case_id].rounds
    assert [record.round for record in kept] == [*range(4), *([4] if again else [])]
    assert all(record.outcome == "completed" for record in kept)


def test_without_the_raw_records_nothing_is_added(tmp_path: Path) -> None:
    root, campaign = tmp_path, campaign_of(MORE)
    run(campaign_of(FIXED), root)
    gone = Folder(root=root).record_path(QUIET, 1)
    gone.unlink()
    before = stored(campaign, root)
    message = re.escape(f"has 3 runs, but {gone} is missing. Put OUT/raw back")
    with pytest.raises(StoreError, match=message):
        run(campaign, root)
    assert stored(campaign, root) == before


def without_room(campaign: Campaign) -> Campaign:
    """The same where no case can run."""
    return replace(campaign, planned=tuple(replace(item, infeasible="needs 2 nodes") for item in campaign.planned))


@pytest.mark.parametrize("was_skipped_at_first", [False, True])
def test_rounds_of_a_case_that_cannot_go_on_here_are_stored_and_added_to_where_it_can(
    tmp_path: Path, *, was_skipped_at_first: bool
) -> None:
    """A command with --nodes was killed and repeated without: its round was missing from the results."""
    campaign = campaign_of(FIXED, (QUIET,))
    nowhere = without_room(campaign)
    if was_skipped_at_first:
        run(nowhere, tmp_path)
    assert run(campaign, tmp_path, kill_after=1) == [(QUIET.case_id, 0)]
    assert run(nowhere, tmp_path) == []
    (result,) = stored(campaign, tmp_path).values()
    assert [record.outcome for record in result.rounds] == ["completed"]
    assert result.ended_because == "the campaign was cut off: 1 of 3 rounds; here it cannot go on: needs 2 nodes"
    assert run(campaign, tmp_path) == [(QUIET.case_id, 1), (QUIET.case_id, 2)]
    (result,) = stored(campaign, tmp_path).values()
    assert len(result.completed) == FIXED.rounds


@pytest.mark.parametrize("failing", [{}, {(QUIET.case_id, 1): "crashed"}])
def test_where_a_case_cannot_run_no_measurement_makes_room_for_saying_so(
    tmp_path: Path, failing: dict[tuple[str, int], Outcome]
) -> None:
    campaign = campaign_of(FIXED, (QUIET,))
    run(campaign, tmp_path, failing=failing)
    before = stored(campaign, tmp_path)
    nowhere, folder = without_room(campaign_of(FIXED, (QUIET,), retry_failed=True)), Folder(root=tmp_path)
    for _ in range(2):
        set_failures_aside(nowhere, folder)
        store_if_complete(nowhere, folder, nowhere.planned[0])
        assert stored(campaign, tmp_path) == before
        set_aside(folder.case_path(QUIET), "superseded")  # as a kill before it was stored would leave it
        store_if_complete(nowhere, folder, nowhere.planned[0])
