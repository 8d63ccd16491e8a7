"""Decide which round of which case runs next, each time from the files in the campaign's folder."""

from collections.abc import Iterator, Sequence

from suite.campaign.blocks import blocks_of, takes_turns
from suite.campaign.cases import decision
from suite.campaign.folder import Folder
from suite.campaign.runs import upstream
from suite.campaign.state import Campaign
from suite.schema.record import Case, PlannedCase
from suite.statistics.stopping_rule import rotated


def known_rounds(campaign: Campaign, folder: Folder) -> list[tuple[PlannedCase, int]]:
    """The rounds that always run and are not done, in order."""
    return [
        (item, round_index)
        for round_index in range(campaign.rule.rounds)
        for item in _order(campaign, round_index)
        if not _is_done(campaign, folder, item.case, round_index)
    ]


def blocks_to_run(campaign: Campaign, folder: Folder) -> Iterator[list[tuple[PlannedCase, int]]]:
    """Yield every round to run, round by round over all cases, as blocks of those that start together.

    Whether a case gets a round is decided when its round index comes; without turns, just before the round.
    """
    decided: set[str] = set()
    for round_index in range(_most_rounds(campaign, folder)):
        order = _order(campaign, round_index)
        due = (item for item in order if _is_due(campaign, folder, item, round_index, decided))
        one_by_one = ([item] for item in due)
        for block in _blocks(campaign, folder, list(due), round_index) if takes_turns(campaign) else one_by_one:
            yield [(item, round_index) for item in block]


def _blocks(
    campaign: Campaign, folder: Folder, due: Sequence[PlannedCase], round_index: int
) -> list[list[PlannedCase]]:
    """The blocks of these rounds. One that is trained, and lacks upstream's run alone, is a block of its own."""
    trained = [item for item in due if folder.is_finished(item.case, round_index)]
    untrained = [item for item in due if item not in trained]
    return [*([item] for item in trained), *blocks_of(campaign, untrained, folder)]


def _is_due(campaign: Campaign, folder: Folder, item: PlannedCase, round_index: int, decided: set[str]) -> bool:
    """Whether a case gets this round now; a case that gets no further round is added to ``decided``."""
    if item.case.case_id in decided or _is_done(campaign, folder, item.case, round_index):
        return False
    if folder.is_finished(item.case, round_index) or _goes_on(campaign, folder, item.case, round_index):
        return True
    decided.add(item.case.case_id)
    return False


def _most_rounds(campaign: Campaign, folder: Folder) -> int:
    """Largest number of rounds that any case can have: by the rule, or from an earlier command."""
    there = (index + 1 for item in campaign.planned for index in folder.finished(item.case))
    return max([campaign.rule.most_rounds, *there])


def _is_done(campaign: Campaign, folder: Folder, case: Case, round_index: int) -> bool:
    """Whether a round is complete: it has its record and, with ``--upstream``, upstream's run."""
    if not folder.is_finished(case, round_index):
        return False
    return not campaign.options.rounds.upstream or not upstream.is_missing(case, folder.run_dir(case, round_index))


def _goes_on(campaign: Campaign, folder: Folder, case: Case, round_index: int) -> bool:
    """Whether a case gets this round, which has no record: it is the next one, or was set aside."""
    finished = folder.finished(case)
    if round_index < max(finished, default=0):
        return True
    return decision(campaign, folder, case).go_on


def _order(campaign: Campaign, round_index: int) -> list[PlannedCase]:
    return rotated([item for item in campaign.planned if not item.infeasible], round_index)
