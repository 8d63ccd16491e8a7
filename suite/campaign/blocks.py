"""The blocks of a campaign: which rounds start together on this machine, and what that costs."""

from collections.abc import Sequence
from typing import Final

from suite.campaign.cases import ended_records
from suite.campaign.folder import Folder
from suite.campaign.state import Campaign
from suite.launch.registry import entry_of
from suite.matrix.blocks import Need, Room, blocks
from suite.schema.record import Case, PlannedCase, RunRecord
from suite.statistics.turns_check import is_alone

LEARNED: Final = 1.1  # a later round may need more memory than the most that an earlier one was seen to use


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
    found = [*together, *([item] for item in items if runs_alone(item))]
    return sorted(found, key=lambda block: items.index(block[0]))


def need_of(campaign: Campaign, case: Case, folder: Folder | None) -> Need | None:
    """What a round of a case takes, as an earlier round that ran alone was seen to, else by the catalog."""
    if case.nnodes > 1:
        return None
    seen = [need for record in (ended_records(folder, case) if folder else ()) if (need := need_seen(record))]
    return seen[-1] if seen else Need.planned(case, campaign.catalog)


def need_seen(record: RunRecord) -> Need | None:
    """What a round took, if it ran alone and all of it was seen."""
    seen = record.telemetry
    if seen is None or record.turns is not None:
        return None
    gpus_gb = [gpu.memory_used_gb.max for gpu in seen.gpus if gpu.memory_used_gb]
    ranks_gb = [rank.memory_gb.max for rank in seen.ranks if rank.memory_gb]
    ranks = record.case.world_size
    if len(ranks_gb) < ranks or len(gpus_gb) < (ranks if record.case.device == "cuda" else 0):
        return None
    return Need(gpu_gb=LEARNED * max(gpus_gb) if gpus_gb else None, host_gb=LEARNED * sum(ranks_gb), ranks=ranks)
