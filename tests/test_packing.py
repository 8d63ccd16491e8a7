"""Packing on generated cases whose rounds take other times than expected: no slot twice at a time, each round once."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest

from suite.campaign.packing import run as packed
from suite.campaign.packing.order import (
    Running,
    Waiting,
    Work,
    choose_slots,
    expected_wall_s,
    guessed,
    lane_of,
    next_start,
    order_key,
    shared_out,
    timetable,
)
from suite.errors import UsageError
from suite.options.options import Options
from suite.schema.lane import Lane
from tests.asked_options import options_with


@dataclass(frozen=True, kw_only=True)
class Started:
    case: int
    round: int
    slots: tuple[int, ...]
    start_s: float
    end_s: float
    kernels: str | None
    was_first: bool
    overtaken: tuple[int, int] | None  # the round that was first and was not started


@dataclass(frozen=True, kw_only=True)
class Generated:
    """A case with the times that its rounds really take, and what is thought of them."""

    ranks: int
    walls_s: tuple[float, ...]
    expected_s: float | None
    task: str


def generate(seed: int) -> tuple[list[Generated], int]:
    dice = random.Random(seed)  # noqa: S311
    num_slots = dice.choice([2, 3, 4, 8])
    cases = []
    for _ in range(dice.randint(1, 12)):
        expected_s = dice.choice([None, dice.uniform(1, 100)])
        walls_s = [(expected_s or 30) * dice.choice([0.1, 1, 1, 1, 5]) for _ in range(dice.randint(1, 5))]
        ranks = dice.choice([1, 1, 2, num_slots])
        cases.append(
            Generated(ranks=ranks, walls_s=tuple(walls_s), expected_s=expected_s, task=dice.choice(["a", "b", "c"]))
        )
    return cases, num_slots


def carry_out(cases: list[Generated], num_slots: int) -> list[Started]:
    """Start what ``next_start`` says whenever it says so, until nothing is left."""
    now_s, started, running = 0.0, list[Started](), list[Started]()
    done, overtaken, warm = Counter[int](), Counter[tuple[int, int]](), set[str]()
    while True:
        idle = [each for each in range(len(cases)) if all(round_.case != each for round_ in running)]
        order = sorted(
            (each for each in idle if done[each] < len(cases[each].walls_s)),
            key=lambda each: order_key(done[each], each, len(cases)),
        )
        kernels = [None if cases[each].task in warm else cases[each].task for each in order]
        waiting = [
            Waiting(
                ranks=cases[each].ranks,
                wall_s=cases[each].expected_s,
                compiles=task,
                overtaken=overtaken[each, done[each]],
            )
            for each, task in zip(order, kernels, strict=True)
        ]
        left_s = [cases[round_.case].expected_s for round_ in running]
        present = [
            Running(
                slots=round_.slots,
                left_s=None if expected is None else max(0.0, round_.start_s + expected - now_s),
                compiles=round_.kernels,
            )
            for round_, expected in zip(running, left_s, strict=True)
        ]
        index = next_start(waiting, present, num_slots=num_slots)
        if index is not None:
            case, first = order[index], (order[0], done[order[0]])
            overtaken[first] += index > 0
            taken = {slot for round_ in running for slot in round_.slots}
            slots = choose_slots([slot for slot in range(num_slots) if slot not in taken], cases[case].ranks)
            new = Started(
                case=case, round=done[case], slots=slots, start_s=now_s, end_s=now_s + cases[case].walls_s[done[case]],
                kernels=kernels[index], was_first=index == 0, overtaken=None if index == 0 else first,
            )  # fmt: skip
            running.append(new)
            started.append(new)
        elif running:
            ended = min(running, key=lambda round_: round_.end_s)
            running.remove(ended)
            now_s = ended.end_s
            done[ended.case] += 1
            warm.add(cases[ended.case].task)
        else:
            return started


GENERATED = [generate(seed) for seed in range(150)]


def test_every_round_runs_once_on_slots_of_its_own() -> None:
    for cases, num_slots in GENERATED:
        each_runs_once(cases, num_slots, carry_out(cases, num_slots))


def each_runs_once(cases: list[Generated], num_slots: int, started: list[Started]) -> None:
    wanted = [(number, index) for number, case in enumerate(cases) for index in range(len(case.walls_s))]
    assert sorted((round_.case, round_.round) for round_ in started) == wanted
    for number, round_ in enumerate(started):
        assert len(set(round_.slots)) == len(round_.slots) == cases[round_.case].ranks
        assert set(round_.slots) <= set(range(num_slots))
        for other in started[:number]:
            if other.end_s > round_.start_s:  # at the same time
                assert not set(other.slots) & set(round_.slots)
                assert other.case != round_.case
                assert other.kernels is None or other.kernels != round_.kernels, "the same kernels compiled twice"


def test_no_round_waits_for_ever() -> None:
    """Once it is first, few overtake it; and it only waits while lanes are really busy."""
    for cases, num_slots in GENERATED:
        none_waits_for_ever(num_slots, carry_out(cases, num_slots))


def none_waits_for_ever(num_slots: int, started: list[Started]) -> None:
    assert max(Counter(round_.overtaken for round_ in started if round_.overtaken).values(), default=0) <= num_slots
    events_s = sorted({round_.end_s for round_ in started} | {0.0})
    for round_ in started:
        if round_.start_s > 0:
            assert round_.start_s in events_s, "it started at a moment at which no lane became free"


def test_a_wide_case_is_not_starved_by_narrow_ones_that_keep_coming() -> None:
    """Narrow rounds last longer than expected, so every one of them seems to fit before the wide one starts."""
    narrow = [Generated(ranks=1, walls_s=(50.0,) * 40, expected_s=1.0, task="a") for _ in range(6)]
    wide = Generated(ranks=4, walls_s=(10.0,) * 2, expected_s=10.0, task="a")
    started = carry_out([*narrow[:3], wide, *narrow[3:]], 4)
    first = next(number for number, round_ in enumerate(started) if round_.case == 3)
    assert first <= 1 + 3 + 4  # the one that compiles, those that were before it in order, and those that overtook it


def test_a_short_round_fits_before_a_wide_one_and_a_long_one_does_not() -> None:
    running = [Running(slots=(0, 1), left_s=60.0)]
    wide = Waiting(ranks=4, wall_s=10.0)
    short, long, unknown = (Waiting(ranks=1, wall_s=wall_s) for wall_s in (60.0, 61.0, None))
    assert next_start([wide, short], running, num_slots=4) == 1
    assert next_start([wide, long], running, num_slots=4) is None
    assert next_start([wide, unknown], running, num_slots=4) is None
    assert next_start([wide, long, short], running, num_slots=4) == 2
    assert next_start([wide, short], [Running(slots=(0, 1), left_s=None)], num_slots=4) is None
    half = Waiting(ranks=2, wall_s=10.0)  # leaves two slots that nobody waits for
    assert next_start([half, long], [Running(slots=(0, 1, 2), left_s=60.0)], num_slots=4) == 1
    assert next_start([half, long], [Running(slots=(0,), left_s=60.0)], num_slots=2) is None
    assert (
        next_start([half, long], [Running(slots=(0,), left_s=5.0), Running(slots=(1, 2), left_s=60.0)], num_slots=5)
        == 0
    )


def test_an_overtaken_round_has_its_limit() -> None:
    running = [Running(slots=(0, 1), left_s=60.0)]
    wide, short = Waiting(ranks=4, wall_s=10.0, overtaken=4), Waiting(ranks=1, wall_s=1.0)
    assert next_start([wide, short], running, num_slots=4) is None


def test_kernels_are_compiled_by_one_round_while_others_go_on() -> None:
    compiling = Running(slots=(0,), left_s=60.0, compiles="ant")
    cold, warm = Waiting(ranks=1, wall_s=10.0, compiles="ant"), Waiting(ranks=1, wall_s=10.0)
    other = Waiting(ranks=1, wall_s=10.0, compiles="hand")
    assert next_start([cold], [compiling], num_slots=4) is None
    assert next_start([cold, warm], [compiling], num_slots=4) == 1
    assert next_start([cold, other], [compiling], num_slots=4) == 1


def test_a_host_is_shared_out_evenly() -> None:
    slots = shared_out(num_gpus=4, cpus=range(10, 28), num_cpus=18)
    assert slots[0] == Lane(gpus=(0,), cpus=(10, 11, 12, 13))
    assert slots[3] == Lane(gpus=(3,), cpus=(22, 23, 24, 25))
    assert lane_of(slots, (1, 2)) == Lane(gpus=(1, 2), cpus=(14, 15, 16, 17, 18, 19, 20, 21))
    assert [str(lane_of(slots, chosen)) for chosen in ((2,), (0, 3))] == ["GPU 2", "GPUs 0,3"]
    assert [lane.cpus for lane in shared_out(num_gpus=2, cpus=range(8), num_cpus=4)] == [(0, 1), (2, 3)]  # a quota
    cpu = shared_out(num_gpus=0, cpus=(0, 2, 4), num_cpus=3)
    assert cpu == tuple(Lane(gpus=(), cpus=(core,)) for core in (0, 2, 4))
    assert str(cpu[1]) == "core 2"


@pytest.mark.parametrize(("gpus", "cpus"), [(1, 16), (0, 1), (4, 3)])
def test_a_host_that_has_nothing_to_share_has_no_slots(gpus: int, cpus: int) -> None:
    assert shared_out(num_gpus=gpus, cpus=range(cpus), num_cpus=cpus) == ()


def test_slots_of_a_round_lie_close_together() -> None:
    assert choose_slots([7, 0, 3, 4, 6], 2) == (3, 4)
    assert choose_slots([0, 2, 5, 6], 3) == (2, 5, 6)


def test_the_expected_time_is_that_of_the_timetable() -> None:
    assert expected_wall_s([Work(ranks=1, rounds=3, wall_s=10.0)] * 4, num_slots=4) == 30.0
    assert (
        expected_wall_s([Work(ranks=2, rounds=1, wall_s=10.0), Work(ranks=1, rounds=1, wall_s=10.0)], num_slots=2)
        == 20.0
    )
    assert expected_wall_s([], num_slots=4) == 0.0
    assert guessed([10.0, None, 30.0]) == [10.0, 20.0, 30.0]
    assert guessed([None, None])[0] > 0
    table = timetable([Work(ranks=1, rounds=2, wall_s=10.0), Work(ranks=1, rounds=1, wall_s=15.0)], num_slots=2)
    assert table == [(0, 0, (0,), 0.0, 10.0), (1, 0, (1,), 0.0, 15.0), (0, 1, (0,), 10.0, 20.0)]


@pytest.mark.parametrize(
    ("options", "device", "expected"),
    [
        (options_with(matrix="smoke"), "cuda", 4),
        (options_with(matrix="smoke"), "cpu", 0),
        (options_with(matrix="smoke", pack=True), "cpu", 8),
        (options_with(matrix="smoke", pack=False), "cuda", 0),
        (options_with(matrix="smoke", launcher="container"), "cuda", 0),
    ],
)
def test_a_host_is_shared_out_where_it_has_gpus_or_is_told_to(options: Options, device: str, expected: int) -> None:
    slots = packed.slots_of(options, device=device, num_gpus=4, num_cpus=8, cores=range(8))  # type: ignore[arg-type]
    assert len(slots) == expected


def test_packing_in_containers_is_refused() -> None:
    with pytest.raises(UsageError, match="--launcher container cannot do yet"):
        packed.slots_of(
            options_with(matrix="smoke", pack=True, launcher="container"),
            device="cuda",
            num_gpus=4,
            num_cpus=8,
            cores=range(8),
        )
