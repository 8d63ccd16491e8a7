"""More rounds for results that had enough, on a campaign's real folder, interrupted at any moment."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from suite.campaign import cases
from suite.campaign.folder import Folder
from suite.campaign.state import Campaign
from suite.commands.store import store_finished
from suite.errors import StoreError
from suite.files.paths import set_aside
from suite.schema.record import Environment, Outcome
from suite.statistics.stopping_rule import CUT_OFF, Rule
from tests.suite.campaign.test_schedule import ADAPTIVE, FIXED, LOUD, QUIET, campaign_of, run, stored

pytestmark = pytest.mark.usefixtures("plain_case_files")
MORE = Rule(rounds=5)
LONGER = Rule(rounds=2, precision=0.01, max_rounds=10)


def go_on(campaign: Campaign, root: Path, *, kill_after: int | None = None) -> list[tuple[str, int]]:
    """Run like ``run_all``, but write a record instead of training."""
    cases.require_raw(campaign, Folder(root=root))
    return run(campaign, root, kill_after=kill_after)


def begun(environment: Environment, root: Path, rule: Rule) -> Path:
    """A campaign by ``rule``, finished."""
    run(campaign_of(environment, rule), root)
    return root


@pytest.fixture(
    params=[(FIXED, MORE), (ADAPTIVE, LONGER), (FIXED, Rule(rounds=4, precision=0.01, max_rounds=10))],
    ids=["exact", "longer", "until precise"],
)
def rules(request: pytest.FixtureRequest) -> tuple[Rule, Rule]:
    less, more = request.param
    return less, more


def test_the_end_is_that_of_the_larger_campaign(
    tmp_path: Path, environment: Environment, rules: tuple[Rule, Rule]
) -> None:
    less, more = rules
    campaign = campaign_of(environment, more)
    at_once = run(campaign, tmp_path / "at once")
    root = begun(environment, tmp_path / "grown", less)
    before = {case_id: result.rounds for case_id, result in stored(campaign, root).items()}
    added = go_on(campaign, root)
    assert added
    assert set(added) == {(case_id, index) for case_id, index in at_once if index >= len(before[case_id])}
    for case_id, result in stored(campaign, root).items():
        whole = stored(campaign, tmp_path / "at once")[case_id]
        assert result.rounds == whole.rounds
        assert result.rounds[: len(before[case_id])] == before[case_id]
        assert result.ended_because == whole.ended_because
    assert go_on(campaign, root) == []  # and nothing more, nor is anything stored anew


def test_interrupted_before_any_round_it_goes_on_to_the_same_end(
    tmp_path: Path, environment: Environment, rules: tuple[Rule, Rule]
) -> None:
    less, more = rules
    campaign = campaign_of(environment, more)
    whole = go_on(campaign, begun(environment, tmp_path / "whole", less))
    for kill_after in range(len(whole)):
        root = begun(environment, tmp_path / str(kill_after), less)
        before = go_on(campaign, root, kill_after=kill_after)
        assert all(len(result.rounds) >= 3 or less is ADAPTIVE for result in stored(campaign, root).values())
        assert before + go_on(campaign, root) == whole
        assert stored(campaign, root) == stored(campaign, tmp_path / "whole")


def test_what_is_stored_of_a_killed_campaign_gets_more_rounds(tmp_path: Path, environment: Environment) -> None:
    (tmp_path / "campaign.json").write_text('{"rounds": 3}', encoding="utf-8")
    assert len(go_on(campaign_of(environment, FIXED), tmp_path, kill_after=4)) == 4
    ended = {result.case.case_id: result for result in store_finished(tmp_path)}
    assert sorted(len(result.rounds) for result in ended.values()) == [1, 1, 2]
    assert {result.ended_because for result in ended.values()} == {
        f"{CUT_OFF}: 2 of 3 rounds",
        f"{CUT_OFF}: 1 of 3 rounds",
    }
    campaign = campaign_of(environment, MORE)
    assert len(go_on(campaign, tmp_path)) == 15 - 4
    for case_id, result in stored(campaign, tmp_path).items():
        before = ended[case_id].rounds
        assert (len(result.rounds), result.rounds[: len(before)]) == (5, before)
        assert result.ended_because == "as many rounds as were asked for"
        path = Folder(root=tmp_path).case_path(result.case)
        assert path.with_name(f"{path.name}.superseded-1").exists()


def test_what_one_case_has_more_of_is_kept_by_a_smaller_rule(tmp_path: Path, environment: Environment) -> None:
    """A command that asks for fewer rounds runs none, and takes none away."""
    root = begun(environment, tmp_path, FIXED)
    assert go_on(campaign_of(environment, MORE, (LOUD,)), root) == [(LOUD.case_id, 3), (LOUD.case_id, 4)]
    before = stored(campaign_of(environment, FIXED), root)
    for rule in (FIXED, Rule(rounds=1)):
        assert go_on(campaign_of(environment, rule), root) == []
        assert stored(campaign_of(environment, FIXED), root) == before
    assert len(before[LOUD.case_id].rounds) == 5


def test_without_the_raw_records_nothing_is_added(tmp_path: Path, environment: Environment) -> None:
    root, campaign = begun(environment, tmp_path, FIXED), campaign_of(environment, MORE)
    gone = Folder(root=root).record_path(QUIET, 1)
    gone.unlink()
    before = stored(campaign, root)
    message = re.escape(f"has 3 rounds, but {gone} is missing. Put OUT/raw back")
    with pytest.raises(StoreError, match=message):
        go_on(campaign, root)
    assert stored(campaign, root) == before


def without_room(campaign: Campaign) -> Campaign:
    """The same where no case can run."""
    return replace(campaign, planned=tuple(replace(item, infeasible="needs 2 nodes") for item in campaign.planned))


@pytest.mark.parametrize("was_skipped_at_first", [False, True])
def test_rounds_of_a_case_that_cannot_go_on_here_are_stored_and_added_to_where_it_can(
    tmp_path: Path, environment: Environment, *, was_skipped_at_first: bool
) -> None:
    """A command with --nodes was killed and repeated without: its round was missing from the results."""
    campaign = campaign_of(environment, FIXED, (QUIET,))
    nowhere = without_room(campaign)
    if was_skipped_at_first:
        go_on(nowhere, tmp_path)
    assert go_on(campaign, tmp_path, kill_after=1) == [(QUIET.case_id, 0)]
    assert go_on(nowhere, tmp_path) == []
    (result,) = stored(campaign, tmp_path).values()
    assert [record.outcome for record in result.rounds] == ["completed"]
    assert result.ended_because == "the campaign was cut off: 1 of 3 rounds; here it cannot go on: needs 2 nodes"
    assert go_on(campaign, tmp_path) == [(QUIET.case_id, 1), (QUIET.case_id, 2)]
    (result,) = stored(campaign, tmp_path).values()
    assert len(result.completed) == FIXED.rounds


@pytest.mark.parametrize("failing", [{}, {(QUIET.case_id, 1): "crashed"}])
def test_where_a_case_cannot_run_no_measurement_makes_room_for_saying_so(
    tmp_path: Path, environment: Environment, failing: dict[tuple[str, int], Outcome]
) -> None:
    campaign = campaign_of(environment, FIXED, (QUIET,))
    run(campaign, tmp_path, failing=failing)
    before = stored(campaign, tmp_path)
    nowhere, folder = without_room(campaign), Folder(root=tmp_path)
    for _ in range(2):
        cases.set_failures_aside(nowhere, folder)
        cases.store_if_complete(nowhere, folder, nowhere.planned[0])
        assert stored(campaign, tmp_path) == before
        set_aside(folder.case_path(QUIET), "superseded")  # as a kill before it was stored would leave it
        cases.store_if_complete(nowhere, folder, nowhere.planned[0])


def test_until_its_new_rounds_are_there_a_case_stays_as_it_was(tmp_path: Path, environment: Environment) -> None:
    root, campaign = begun(environment, tmp_path, FIXED), campaign_of(environment, MORE)
    before = stored(campaign, root)
    assert len(go_on(campaign, root, kill_after=3)) == 3
    assert stored(campaign, root) == before
