"""Blocks of real processes that take turns: what their records say, and faults in a turn and before it."""

import os
import signal
import threading
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pytest

from suite.campaign.runs.keeper import MIN_ITERATIONS
from suite.records.rank_file import rank_path, read_rank_file
from suite.schema.rank_protocol import FIRST_ITERATIONS, TURNS_SOCKET
from suite.schema.record import Environment, RunRecord
from suite.statistics.reduce import starts_of_turns
from tests.fixtures.runs.real_runs import marked_processes, wait_until
from tests.fixtures.runs.simulated_campaign import printed, records, run_all
from tests.fixtures.runs.turning_ranks import CASES, ITERATIONS, WAIT_S, TurningHost, turning_campaign

A, B, C = (case.case_id for case in CASES)
FAULTS = {"killed": "crashed", "hung": "hung", "crash at start": "crashed", "ends early": "invalid", "oom": "completed"}
FAULTY = {
    fault: replace(CASES[0], case_id=f"ant-weak/faulty-n{number}-1x1") for number, fault in enumerate(FAULTS, start=1)
}
OTHERS = {case.case_id for case in FAULTY.values()}


@dataclass(frozen=True, kw_only=True)
class Block:
    root: Path
    records: dict[str, RunRecord]
    lines: list[str]


@pytest.fixture(scope="module")
def block(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Block:
    """A block of two sound cases, and one with each fault between them."""
    root = tmp_path_factory.mktemp("block")
    host = TurningHost(faults={(case.case_id, 0): fault for fault, case in FAULTY.items()})
    campaign = turning_campaign(host, environment, cases=[CASES[0], *FAULTY.values(), CASES[2]])
    run_all(campaign, root)
    assert marked_processes(host.mark) == []
    by_case = {record.case.case_id: record for record in records(root)}
    return Block(root=root, records=by_case, lines=printed(campaign).splitlines())


def test_every_record_says_that_it_was_measured_in_turns_with_whom_and_how_often(block: Block) -> None:
    for case_id, other in ((A, C), (C, A)):
        record = block.records[case_id]
        assert record.turns is not None
        assert sorted(record.turns.beside) == sorted({other, *OTHERS})
        numbers = record.ranks[0].samples["turn"]
        assert numbers[:FIRST_ITERATIONS] == (None,) * FIRST_ITERATIONS
        assert {number for number in numbers if number is not None} == set(range(1, record.turns.turns + 1))
        assert len(starts_of_turns(record)) == record.turns.turns
    assert not list(block.root.glob(f"raw/*/*/r0/{TURNS_SOCKET}"))


def test_iterations_of_different_rounds_never_overlap(block: Block) -> None:
    begun = [A, C, *(FAULTY[fault].case_id for fault in ("killed", "hung", "ends early"))]
    spans = sorted(
        span for case_id in begun for span in in_turns(rank_path(block.root / "raw" / case_id / "r0", 0), case_id)
    )
    assert all(end_s <= next_s for (_, end_s, _), (next_s, _, _) in pairwise(spans))
    changes = [later[2] for earlier, later in pairwise(spans) if earlier[2] != later[2]]
    assert len(changes) > len(begun)  # they took more than one turn each


def in_turns(path: Path, case_id: str) -> list[tuple[float, float, str]]:
    """Start and end of a rank's iterations in turns, on the clock that all processes share; records round them."""
    file = read_rank_file(0, path)
    assert file.clock is not None
    starts_s, times_s, turns = (
        [iteration.samples[name] for iteration in file.iterations] for name in ("start_s", "iteration_time_s", "turn")
    )
    return [
        (file.clock.zero_monotonic_s + start_s, file.clock.zero_monotonic_s + start_s + time_s, case_id)
        for start_s, time_s, turn in zip(starts_s, times_s, turns, strict=True)
        if start_s is not None and time_s is not None and turn is not None
    ]


def test_a_fault_ends_its_own_case_only(block: Block) -> None:
    runs = block.records
    assert {fault: runs[case.case_id].outcome for fault, case in FAULTY.items()} == FAULTS
    assert all(runs[case.case_id].reason for fault, case in FAULTY.items() if fault != "oom")
    assert {runs[A].outcome, runs[C].outcome} == {"completed"}
    assert {len(runs[name].ranks[0].samples["iteration_time_s"]) for name in (A, C)} == {ITERATIONS}
    failed = next(index for index, line in enumerate(block.lines) if line.startswith(f"{FAULTY['killed'].case_id} "))
    assert "run 0: crashed" in block.lines[failed]  # before the block has ended
    assert failed < next(index for index, line in enumerate(block.lines) if f"{A} run 0: completed" in line)


def test_a_round_that_runs_out_of_memory_in_its_block_runs_alone(block: Block) -> None:
    crowded = FAULTY["oom"].case_id
    assert block.records[crowded].turns is None
    assert f"    {crowded} ran out of memory in its block, so it runs alone." in block.lines
    assert list(block.root.glob(f"raw/{crowded}/r0.crowded-1/rank-0.jsonl"))


def test_where_only_what_is_learned_counts_runs_go_on_at_the_same_time(
    environment: Environment, tmp_path: Path
) -> None:
    host = TurningHost(together=2)
    learning = [replace(case, only_learning=True, hang_timeout_s=2 * WAIT_S) for case in (CASES[0], CASES[2])]
    run_all(turning_campaign(host, environment, cases=learning), tmp_path)
    assert [(record.outcome, record.turns) for record in records(tmp_path)] == [("completed", None)] * 2
    assert not [record for record in records(tmp_path) if "turn" in record.ranks[0].samples]
    spans = [span_of(rank_path(tmp_path / "raw" / name / "r0", 0)) for name in (A, C)]
    assert max(begin_s for begin_s, _ in spans) < min(end_s for _, end_s in spans)


def span_of(path: Path) -> tuple[float, float]:
    """Begin of a rank's first iteration and of its last, on the clock that all processes share."""
    file = read_rank_file(0, path)
    assert file.clock is not None
    starts_s = [iteration.samples["start_s"] or 0.0 for iteration in file.iterations]
    return file.clock.zero_monotonic_s + starts_s[0], file.clock.zero_monotonic_s + starts_s[-1]


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_keeps_finished_rounds_and_leaves_no_process(environment: Environment, tmp_path: Path) -> None:
    short = replace(CASES[0], iterations=FIRST_ITERATIONS + MIN_ITERATIONS)
    endless = replace(CASES[1], iterations=100_000)
    host = TurningHost()
    campaign = turning_campaign(host, environment, cases=[short, endless])

    def interrupt() -> None:
        wait_until((tmp_path / "raw" / A / "r0" / "record.json").exists, timeout_s=20, what="one has ended")
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run_all(campaign, tmp_path)
    finally:
        thread.join()
    assert marked_processes(host.mark) == []
    assert [record.case.case_id for record in records(tmp_path)] == [A]

    again = turning_campaign(host, environment, cases=[short, replace(endless, iterations=ITERATIONS)])
    run_all(again, tmp_path)
    by_case = {record.case.case_id: record for record in records(tmp_path)}
    assert by_case[A].turns is not None  # kept from before
    assert by_case[B].turns is None  # alone: nothing was left to start together with
    assert list(tmp_path.glob(f"raw/{B}/r0.interrupted-1"))


def test_a_killed_suite_leaves_no_process_and_goes_on_where_it_was(environment: Environment, tmp_path: Path) -> None:
    host = TurningHost()
    child = os.fork()
    if not child:  # a suite of its own, which the test kills
        try:
            endless = [replace(case, iterations=100_000) for case in CASES[:2]]
            run_all(turning_campaign(host, environment, cases=endless), tmp_path)
        finally:
            os._exit(0)
    try:
        wait_until(
            lambda: all((tmp_path / "raw" / name / "r0" / "rank-0.jsonl").exists() for name in (A, B)),
            timeout_s=20,
            what="all rounds have begun",
        )
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    wait_until(lambda: not marked_processes(host.mark), timeout_s=10, what="no process is left")
    run_all(turning_campaign(host, environment, cases=CASES[:2]), tmp_path)
    assert [(record.outcome, record.turns is None) for record in records(tmp_path)] == [("completed", False)] * 2
    assert len(list(tmp_path.glob("raw/*/*/r0.interrupted-1"))) == 2
