"""Decide which rounds run next, each time from the files in the campaign's folder, and which of them start together."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

from suite.campaign.folder import Folder
from suite.campaign.runs import upstream
from suite.campaign.state import Campaign
from suite.launch.registry import entry_of
from suite.matrix.resources import Need, Room, blocks
from suite.records import store
from suite.schema.record import Case, PlannedCase, RunRecord
from suite.statistics.stopping_rule import Decision, decide, rotated
from suite.statistics.twins import is_alone, ratios_of

LEARNED: Final = 1.1  # a later round may need more memory than the most that an earlier one was seen to use


def known_rounds(campaign: Campaign, folder: Folder) -> list[tuple[PlannedCase, int]]:
    """The rounds that always run and are not done, in order."""
    return [
        (item, index)
        for index in range(campaign.rule.rounds)
        for item in _order(campaign, index)
        if not _is_done(campaign, folder, item.case, index)
    ]


def known_blocks(campaign: Campaign, folder: Folder) -> list[list[Case]]:
    """The same rounds, as blocks of those that will start together by what is known now of their memory."""
    of_rounds = groupby(known_rounds(campaign, folder), key=itemgetter(1))
    return [
        [item.case for item in block]
        for _, of_round in of_rounds
        for block in blocks_of(campaign, [item for item, _ in of_round], folder)
    ]


def blocks_to_run(campaign: Campaign, folder: Folder) -> Iterator[list[tuple[PlannedCase, int]]]:
    """Yield every round to run, round by round over all cases, as blocks of those that start together.

    Whether a case gets a round is decided when its round index comes; without turns, just before the round.
    """
    decided: set[str] = set()
    of_earlier_commands = (index + 1 for item in campaign.planned for index in folder.finished(item.case))
    for index in range(max([campaign.rule.most_rounds, *of_earlier_commands])):
        due = (item for item in _order(campaign, index) if _is_due(campaign, folder, item, index, decided))
        if not takes_turns(campaign):
            yield from ([(item, index)] for item in due)
            continue
        items = list(due)
        trained = [item for item in items if folder.is_finished(item.case, index)]  # they lack upstream's run alone
        untrained = [item for item in items if item not in trained]
        for block in [*([item] for item in trained), *blocks_of(campaign, untrained, folder)]:
            yield [(item, index) for item in block]


def _is_due(campaign: Campaign, folder: Folder, item: PlannedCase, index: int, decided: set[str]) -> bool:
    """Whether a case gets this round now; a case that gets no further round is added to ``decided``."""
    if item.case.case_id in decided or _is_done(campaign, folder, item.case, index):
        return False
    # A round before the last one that is finished was set aside, or lacks upstream's run.
    if index <= max(folder.finished(item.case), default=-1) or decision(campaign, folder, item.case).go_on:
        return True
    decided.add(item.case.case_id)
    return False


def _is_done(campaign: Campaign, folder: Folder, case: Case, index: int) -> bool:
    """Whether a round is complete: it has its record and, with ``--upstream``, upstream's run."""
    if not folder.is_finished(case, index):
        return False
    return not campaign.options.rounds.upstream or not upstream.needs_upstream(case, folder.run_dir(case, index))


def _order(campaign: Campaign, index: int) -> list[PlannedCase]:
    return rotated([item for item in campaign.planned if not item.infeasible], index)


def decision(campaign: Campaign, folder: Folder, case: Case) -> Decision:
    """Whether the case gets another round, and why."""
    ended = ended_records(folder, case)
    failed = next((record for record in ended if not record.counts), None)
    if campaign.options.search.capacity and failed:  # what does not fit in memory does not fit in the next round either
        return Decision(go_on=False, reason=f"round {failed.round} did not complete, so no further one is tried")
    if ended and ended[-1].round >= len(ended):
        return Decision(go_on=True, reason="an earlier round has been set aside and is to be run again")
    alike = [item.case for item in campaign.planned if item.case.series == case.series]
    needs_model = campaign.rule.precision is not None and len(ended) >= campaign.rule.rounds
    of_set = [record for other in alike for record in ended_records(folder, other)] if needs_model else []
    ratios = ratios_of(case, alike)
    return decide(ended, campaign.rule, ratios=ratios, of_set=of_set, elapsed_s=campaign.elapsed_s)


def ended_records(folder: Folder, case: Case) -> tuple[RunRecord, ...]:
    """The records of every finished round of a case, in order. Raises StoreError as ``store.read_record_of`` does."""
    return tuple(store.read_record_of(case, index, folder.record_path(case, index)) for index in folder.finished(case))


def takes_turns(campaign: Campaign) -> bool:
    """Whether the rounds of a campaign are measured in turns where they fit this machine together."""
    options = campaign.options
    return options.rounds.turns and entry_of(options).takes_turns and not options.search.capacity


def blocks_of(
    campaign: Campaign, items: Sequence[PlannedCase], folder: Folder | None = None
) -> list[list[PlannedCase]]:
    """Cut cases whose rounds run next into blocks: those that follow each other in ``items`` and fit together.

    A copy that is to run alone is a block of its own. So is a round of a series with cold starts, cold or warm: the
    processes of a block start at the same moment, so imports and compilers would share the cores and the disk, and
    ranks that are ready would wait for their turn within their start. Earlier rounds in ``folder`` say how much memory
    a case needs, before the catalog does.
    """
    room = Room.of(campaign.machine) if takes_turns(campaign) else None
    if room is None:
        return [[item] for item in items]

    def need(item: PlannedCase) -> Need | None:
        return need_of(campaign, item.case, folder)

    def runs_alone(item: PlannedCase) -> bool:
        return is_alone(item.case) or item.case.series in campaign.timed_starts

    together = blocks([item for item in items if not runs_alone(item)], need, room)
    all_blocks = [*together, *([item] for item in items if runs_alone(item))]
    return sorted(all_blocks, key=lambda block: items.index(block[0]))


def need_of(campaign: Campaign, case: Case, folder: Folder | None) -> Need | None:
    """What a round of a case takes, as an earlier round that ran alone was seen to, else by the catalog."""
    if case.nnodes > 1:
        return None
    ended = ended_records(folder, case) if folder else ()
    needs = [need for record in ended if (need := need_seen(record))]
    return needs[-1] if needs else Need.planned(case, campaign.catalog)


def need_seen(record: RunRecord) -> Need | None:
    """What a round took, if it ran alone and all of it was seen."""
    telemetry = record.telemetry
    if telemetry is None or record.turns is not None:
        return None
    gpus_gb = [gpu.memory_used_gb.max for gpu in telemetry.gpus if gpu.memory_used_gb]
    ranks_gb = [rank.memory_gb.max for rank in telemetry.ranks if rank.memory_gb]
    ranks = record.case.num_processes
    if len(ranks_gb) < ranks or len(gpus_gb) < (record.case.num_gpus if record.case.device == "cuda" else 0):
        return None
    return Need(gpu_gb=LEARNED * max(gpus_gb) if gpus_gb else None, host_gb=LEARNED * sum(ranks_gb), ranks=ranks)
