"""Turns between real ranks on real sockets: who runs when, and what happens when one of them or the keeper is gone."""

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from suite.campaign.runs.keeper import Keeper, Seat
from suite.schema.rank_protocol import FIRST_ITERATIONS, TURNS_SOCKET
from suite.schema.record import Case
from tasks.rank.turns import KeeperGone, Turns
from tests.fixtures.runs.real_runs import wait_until

ITERATION_S = 0.01
TURN_S = 0.08


type Ran = list[tuple[str, int, int | None]]  # case, iteration, turn


@dataclass(kw_only=True)
class Rank:
    """A rank of a round, as a thread that connects to its seat's socket and notes each of its iterations."""

    seat: Seat
    ran: Ran
    iteration_s: float = ITERATION_S
    errors: list[Exception] = field(default_factory=list)

    def run(self) -> None:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(self.seat.run_dir / TURNS_SOCKET))
        turns = Turns(connection)
        case = self.seat.case
        try:
            for iteration in range(case.iterations):
                turn = turns.begin(iteration)
                self.ran.append((case.case_id, iteration, turn))
                time.sleep(self.iteration_s)
        except KeeperGone as error:
            self.errors.append(error)
        finally:
            connection.close()


@pytest.fixture
def seats(tmp_path: Path, make_case: Callable[..., Case]) -> list[Seat]:
    """Seats of the cases a, b and c with 2 + 30 iterations and one rank each."""
    cases = [make_case(case_id=name, iterations=FIRST_ITERATIONS + 30) for name in ("a", "b", "c")]
    return [Seat(case=replace(case, nproc_per_node=1), run_dir=tmp_path / case.case_id) for case in cases]


def play(keeper: Keeper, ranks: list[Rank]) -> None:
    """Run all ranks; a seat has ended when none of its ranks is left, as a launcher would say."""

    def run(seat: Seat) -> None:
        threads = [threading.Thread(target=rank.run) for rank in ranks if rank.seat is seat]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        keeper.ended(seat)

    seats = {id(rank.seat): rank.seat for rank in ranks}.values()
    launchers = [threading.Thread(target=run, args=(seat,)) for seat in seats]
    for launcher in launchers:
        launcher.start()
    for launcher in launchers:
        launcher.join(timeout=20)
        assert not launcher.is_alive(), "a rank still waits for its turn"


def test_cases_take_turns_in_alternating_order(seats: list[Seat]) -> None:
    ran: Ran = []
    with Keeper(seats, turn_s=TURN_S) as keeper:
        play(keeper, [Rank(seat=seat, ran=ran) for seat in seats])
    order = dict.fromkeys((case_id, turn) for case_id, _, turn in ran if turn is not None)
    assert [case_id for case_id, _ in order][:6] == ["a", "b", "c", "c", "b", "a"]
    for seat in seats:
        own = [(iteration, turn) for case_id, iteration, turn in ran if case_id == seat.case.case_id]
        assert [iteration for iteration, _ in own] == list(range(seat.case.iterations))
        assert [turn for _, turn in own[:FIRST_ITERATIONS]] == [None] * FIRST_ITERATIONS
        assert {turn for _, turn in own[FIRST_ITERATIONS:]} == set(range(1, seat.turns + 1))
    assert not any((seat.run_dir / TURNS_SOCKET).exists() for seat in seats)


def test_all_ranks_of_a_round_get_the_same_turns(seats: list[Seat]) -> None:
    wide, other = replace(seats[0], case=replace(seats[0].case, nproc_per_node=3)), seats[1]
    own: list[Ran] = [[], [], []]
    ranks = [
        Rank(seat=wide, ran=ran, iteration_s=time_s) for ran, time_s in zip(own, (0.001, 0.004, 0.02), strict=True)
    ]
    with Keeper([wide, other], turn_s=TURN_S) as keeper:
        play(keeper, [*ranks, Rank(seat=other, ran=[])])
    assert own[0] == own[1] == own[2]
    assert len(own[0]) == wide.case.iterations


@pytest.mark.parametrize("is_late", [False, True])
def test_a_round_that_ends_before_its_turn_delays_nobody_and_gets_none(seats: list[Seat], *, is_late: bool) -> None:
    """It ends while it waits, or one of its ranks is heard after its end."""
    gone, other = seats[:2]
    ran: Ran = []
    with Keeper([gone, other], turn_s=TURN_S) as keeper, socket.socket(socket.AF_UNIX) as rank:
        if is_late:
            keeper.ended(gone)
        rank.connect(str(gone.run_dir / TURNS_SOCKET))
        rank.sendall(b"ready\n")
        if is_late:
            time.sleep(0.2)
        else:
            wait_until(gone.waits, timeout_s=5, what="it waits")
            rank.close()
            keeper.ended(gone)
        play(keeper, [Rank(seat=other, ran=ran)])
    assert (gone.state, gone.turns, len(ran)) == ("ended", 0, other.case.iterations)


def test_a_round_that_starts_holds_all_turns_back(seats: list[Seat]) -> None:
    early, late = seats[:2]
    ran: Ran = []
    with Keeper([early, late], turn_s=TURN_S) as keeper:
        thread = threading.Thread(target=Rank(seat=early, ran=ran).run)
        thread.start()
        wait_until(early.waits, timeout_s=5, what="the early round waits")
        time.sleep(0.2)
        assert len(ran) == FIRST_ITERATIONS
        keeper.ended(late)
        thread.join(timeout=20)
        keeper.ended(early)
    assert len(ran) == early.case.iterations


def test_without_a_keeper_a_rank_that_waits_ends_with_a_reason(seats: list[Seat]) -> None:
    rank = Rank(seat=seats[0], ran=[])
    with Keeper(seats, turn_s=TURN_S):
        thread = threading.Thread(target=rank.run)
        thread.start()
        wait_until(seats[0].waits, timeout_s=5, what="it waits")
    thread.join(timeout=5)
    assert [str(error) for error in rank.errors] == [
        "the process that gives turns has ended; run the same command again"
    ]


def test_a_folder_with_a_long_name_has_turns_too(tmp_path: Path, seats: list[Seat]) -> None:
    deep = replace(seats[0], run_dir=tmp_path / ("x" * 120) / "r0")
    with Keeper([deep]):
        assert (deep.run_dir / TURNS_SOCKET).is_socket()
