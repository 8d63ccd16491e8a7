"""Decide which round of which case runs next, each time from the files in the campaign's folder."""

from collections.abc import Iterator

from suite.campaign.cases import decision, ended_records
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


def rounds_to_run(campaign: Campaign, folder: Folder) -> Iterator[tuple[PlannedCase, int]]:
    """Yield every round to run, round by round over all cases. Each case is decided when its turn comes."""
    decided: set[str] = set()
    for round_index in range(_most_rounds(campaign, folder)):
        for item in _order(campaign, round_index):
            if item.case.case_id in decided or _is_done(campaign, folder, item.case, round_index):
                continue
            if folder.is_finished(item.case, round_index) or _goes_on(campaign, folder, item.case, round_index):
                yield item, round_index
            else:
                decided.add(item.case.case_id)


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
    return round_index < max(finished, default=0) or decision(campaign, ended_records(folder, case)).go_on


def _order(campaign: Campaign, round_index: int) -> list[PlannedCase]:
    return rotated([item for item in campaign.planned if not item.infeasible], round_index)
