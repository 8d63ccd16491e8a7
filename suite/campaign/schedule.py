"""Which round of which case runs next, decided anew before each from what the campaign's folder holds."""

from collections.abc import Iterator

from suite.campaign.folder import Folder
from suite.campaign.packing import order as packing
from suite.campaign.rounds import decision, ended_records, is_done
from suite.campaign.state import Campaign
from suite.schema.record import Case, PlannedCase
from suite.statistics.stopping_rule import rotated


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
    for round_index in range(_most_rounds(campaign, folder)):
        for item in _order(campaign, round_index):
            if is_wanted(campaign, folder, item.case, round_index):
                yield item, round_index


def _most_rounds(campaign: Campaign, folder: Folder) -> int:
    """Of any case: by the rule, or what a command that asked for more of some cases has left."""
    left = (index + 1 for item in campaign.planned for index in folder.finished(item.case))
    return max([campaign.rule.most_rounds, *left])


class Queue:
    """The next round of each case in the order of ``rounds_to_run``, for a campaign that runs several at a time.

    A case has one round at a time in it, since the round before decides whether there is another.
    """

    def __init__(self, campaign: Campaign, folder: Folder) -> None:
        self._campaign, self._folder = campaign, folder
        self._items = [item for item in campaign.planned if not item.infeasible]
        self._most_rounds = _most_rounds(campaign, folder)
        self._next = {number: self._wanted_from(number, 0) for number in range(len(self._items))}
        self._running: set[int] = set()

    def waiting(self) -> list[tuple[PlannedCase, int]]:
        """What may start now."""
        found = [
            (packing.order_key(index, number, len(self._items)), self._items[number], index)
            for number, index in self._next.items()
            if index is not None and number not in self._running
        ]
        return [(item, index) for _, item, index in sorted(found, key=lambda entry: entry[0])]

    def take(self, item: PlannedCase, round_index: int) -> bool:
        """Take a round out of the queue; False when it is not wanted any more, as when time has run out."""
        number = self._items.index(item)
        if not is_wanted(self._campaign, self._folder, item.case, round_index):
            self._next[number] = self._wanted_from(number, round_index + 1)
            return False
        self._running.add(number)
        return True

    def ended(self, item: PlannedCase, round_index: int) -> None:
        """Go on to the case's next round, if it gets one. This one is not tried again."""
        number = self._items.index(item)
        self._running.remove(number)
        self._next[number] = self._wanted_from(number, round_index + 1)

    def _wanted_from(self, number: int, first: int) -> int | None:
        case = self._items[number].case
        indices = range(first, self._most_rounds)
        return next((index for index in indices if is_wanted(self._campaign, self._folder, case, index)), None)


def is_wanted(campaign: Campaign, folder: Folder, case: Case, round_index: int) -> bool:
    """Say whether something of this round is to be run now."""
    if folder.is_finished(case, round_index):
        return not is_done(campaign, folder, case, round_index)
    if folder.is_decided(case):
        return False
    ended = ended_records(folder, case)
    latest = ended[-1].round if ended else -1
    return round_index < max(campaign.rule.rounds, latest) or decision(campaign, ended).go_on


def _order(campaign: Campaign, round_index: int) -> list[PlannedCase]:
    return rotated([item for item in campaign.planned if not item.infeasible], round_index)
