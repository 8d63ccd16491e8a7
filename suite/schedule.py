"""Which round of which case runs next, decided anew before each from what the campaign's folder holds."""

from collections.abc import Iterator

from suite.campaign_state import Campaign
from suite.folder import Folder
from suite.repeats import rotated
from suite.rounds import decision, ended_records, is_done
from suite.schema import Case, PlannedCase


def known_rounds(campaign: Campaign, folder: Folder) -> list[tuple[PlannedCase, int]]:
    """The rounds that will run whatever the others say, in their order: those that are always run and not finished."""
    return [
        (item, round_index)
        for round_index in range(campaign.rule.rounds)
        for item in _order(campaign, round_index)
        if is_wanted(campaign, folder, item.case, round_index)
    ]


def rounds_to_run(campaign: Campaign, folder: Folder) -> Iterator[tuple[PlannedCase, int]]:
    """Every round to run, round by round over all cases, each case judged when its turn comes."""
    for round_index in range(campaign.rule.most_rounds):
        for item in _order(campaign, round_index):
            if is_wanted(campaign, folder, item.case, round_index):
                yield item, round_index


def is_wanted(campaign: Campaign, folder: Folder, case: Case, round_index: int) -> bool:
    """Say whether something of this round is to be run now."""
    if folder.is_finished(case, round_index):
        return not is_done(campaign, folder, case, round_index)
    if folder.case_path(case).exists():
        return False  # decided by an earlier command, perhaps when its time was spent
    ended = ended_records(campaign, folder, case)
    latest = ended[-1].round if ended else -1
    return round_index < max(campaign.rule.rounds, latest) or decision(campaign, ended).go_on


def _order(campaign: Campaign, round_index: int) -> list[PlannedCase]:
    return rotated([item for item in campaign.planned if not item.infeasible], round_index)
