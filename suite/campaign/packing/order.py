"""Which round starts next, and on which GPUs and cores of a host that runs several at a time. Pure.

A host is shared out in slots: one for each GPU with an equal part of the cores (on a CPU one core each). A round of N
ranks gets N slots, whether others run beside it or not, so that packing changes nothing else.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from suite.schema.lane import Lane

UNKNOWN_WALL_S: Final = 60.0  # of a round, where no round of the plan has an estimate; only their ratio matters


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """The next round of a case: no case runs twice at a time, since its rounds are to see different moments."""

    ranks: int
    wall_s: float | None  # expected
    compiles: str | None = None  # whose kernels it is the first to need on this host; two of these never run at once
    overtaken: int = 0  # rounds that came later and started while this one was first


@dataclass(frozen=True, kw_only=True)
class Running:
    """A round in its slots."""

    slots: tuple[int, ...]
    left_s: float | None  # expected
    compiles: str | None = None


def shared_out(*, num_gpus: int, cpus: Sequence[int], num_cpus: int) -> tuple[Lane, ...]:
    """The slots of a host, each the lane of one rank; () where there is nothing to share.

    ``cpus`` are the usable cores in an order in which those that share hardware stand together, ``num_cpus`` is how
    many of them may be used at a time. Cores that do not divide by the GPUs stay with the system.
    """
    num_slots = num_gpus or num_cpus
    share = min(num_cpus, len(cpus)) // num_slots if num_slots else 0
    if num_slots < 2 or share < 1:  # noqa: PLR2004  (one slot is the host itself)
        return ()
    return tuple(
        Lane(gpus=(slot,) if num_gpus else (), cpus=tuple(cpus[slot * share : (slot + 1) * share]))
        for slot in range(num_slots)
    )


def lane_of(slots: Sequence[Lane], chosen: Sequence[int]) -> Lane:
    """The lane that the slots with these numbers make up."""
    parts = [slots[number] for number in chosen]
    return Lane(
        gpus=tuple(gpu for part in parts for gpu in part.gpus), cpus=tuple(cpu for part in parts for cpu in part.cpus)
    )


def choose_slots(free: Sequence[int], ranks: int) -> tuple[int, ...]:
    """``ranks`` of the free slots that lie closest together, the first of several such choices."""
    ordered = sorted(free)
    starts = range(len(ordered) - ranks + 1)
    start = min(starts, key=lambda first: ordered[first + ranks - 1] - ordered[first])
    return tuple(ordered[start : start + ranks])


def next_start(waiting: Sequence[Waiting], running: Sequence[Running], *, num_slots: int) -> int | None:
    """Index in ``waiting``, which is in its order, of the round to start now; None when none should.

    It is the first one, if it can start. While it cannot, a later one may overtake it that is not expected to make it
    wait any longer; but only ``num_slots`` of them, because expectations can be wrong: then the lanes drain.
    """
    free = num_slots - sum(len(round_.slots) for round_ in running)
    compiling = {round_.compiles for round_ in running} - {None}
    startable = [
        index for index, round_ in enumerate(waiting) if round_.ranks <= free and round_.compiles not in compiling
    ]
    if not startable or startable[0] == 0:
        return startable[0] if startable else None
    if waiting[0].overtaken >= num_slots:
        return None
    start_s, spare = _start_of(waiting[0], running, free=free)
    for index in startable:
        wall_s = waiting[index].wall_s
        if waiting[index].ranks <= spare or (wall_s is not None and start_s is not None and wall_s <= start_s):
            return index
    return None


def _start_of(first: Waiting, running: Sequence[Running], *, free: int) -> tuple[float | None, int]:
    """When ``first`` will start [s from now], None for nobody knows, and how many slots it then leaves free.

    As long as it does not know how long a round will take, nothing but slots that are spare anyway is given away.
    """
    start_s: float | None = 0.0
    for round_ in sorted(running, key=lambda item: (item.left_s is None, item.left_s or 0.0)):
        is_awaited = first.compiles is not None and round_.compiles == first.compiles
        if free >= first.ranks and not is_awaited:
            continue
        start_s = None if start_s is None or round_.left_s is None else max(start_s, round_.left_s)
        free += len(round_.slots)
    return start_s, free - first.ranks


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a plan knows of a case."""

    ranks: int
    rounds: int
    wall_s: float  # of a round


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Wall time of rounds with and without packing, and of the test before it [s]."""

    alone_s: float
    packed_s: float
    test_s: float  # what it adds where it allows packing: the rounds beside its own then count
    refused_s: tuple[float, float]  # what it adds where it does not, after half of its rounds and after all


def guessed(walls_s: Sequence[float | None]) -> list[float]:
    """``walls_s`` where what nobody knows counts as the mean of the others."""
    known = [wall_s for wall_s in walls_s if wall_s is not None]
    mean_s = sum(known) / len(known) if known else UNKNOWN_WALL_S
    return [mean_s if wall_s is None else wall_s for wall_s in walls_s]


def expected_wall_s(work: Sequence[Work], *, num_slots: int) -> float:
    """Wall time of all rounds, several at a time on ``num_slots`` slots; none may have more ranks than that."""
    return max((end_s for *_, end_s in timetable(work, num_slots=num_slots)), default=0.0)


def timetable(work: Sequence[Work], *, num_slots: int) -> list[tuple[int, int, tuple[int, ...], float, float]]:
    """Every round in the order in which they start: position of its case, round, slots, start and end [s].

    This is what ``next_start`` makes of rounds that take as long as expected.
    """
    planned: list[tuple[int, int, tuple[int, ...], float, float]] = []
    running: dict[int, tuple[tuple[int, ...], float]] = {}  # position of the case -> slots and end
    done, overtaken, now_s = [0] * len(work), [0] * len(work), 0.0
    while True:
        idle = [number for number, item in enumerate(work) if number not in running and done[number] < item.rounds]
        order = sorted(idle, key=lambda number: order_key(done[number], number, len(work)))
        index = next_start(
            [Waiting(ranks=work[each].ranks, wall_s=work[each].wall_s, overtaken=overtaken[each]) for each in order],
            [Running(slots=slots, left_s=end_s - now_s) for slots, end_s in running.values()],
            num_slots=num_slots,
        )
        if index is not None:
            overtaken[order[0]] += index > 0
            number = order[index]
            taken = set(itertools.chain.from_iterable(slots for slots, _ in running.values()))
            slots = choose_slots([slot for slot in range(num_slots) if slot not in taken], work[number].ranks)
            running[number], overtaken[number] = (slots, now_s + work[number].wall_s), 0
            planned.append((number, done[number], slots, now_s, running[number][1]))
        elif running:
            ended = min(running, key=lambda number: running[number][1])
            now_s = running.pop(ended)[1]
            done[ended] += 1
        else:
            return planned


def order_key(round_index: int, position: int, num_cases: int) -> tuple[int, int]:
    """What rounds are sorted by: round by round, each beginning one case later than the one before."""
    return round_index, (position - round_index) % max(1, num_cases)
