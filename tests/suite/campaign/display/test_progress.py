import io
from dataclasses import replace
from types import SimpleNamespace

import pytest
from rich.console import Console

from suite.campaign.display.progress import Reporter, Rest
from suite.schema.record import PlannedCase
from tests.conftest import CaseMaker
from tests.fixtures.results.stored_rounds import plain_round
from tests.fixtures.runs.simulated_campaign import planned_case


def planned(make_case: CaseMaker, name: str, estimate_s: float) -> PlannedCase:
    return planned_case(make_case(case_id=name), wall_s=estimate_s)


def test_a_first_run_that_compiles_makes_no_later_one_longer_but_the_first_of_each_other_task(
    make_case: CaseMaker,
) -> None:
    """Four H200s took 1:44 instead of 0:34, and the time left rose from 13:46 to 41:55."""
    cart = planned(make_case, "a/1", 34.0)
    hand = replace(cart, case=make_case(case_id="b/1", task="Isaac-Other"), estimated_wall_s=40.0)
    rest = Rest([cart, hand])
    waiting = [[cart.case], [hand.case], [hand.case]]
    assert rest.of([[cart.case], *waiting]) == 34 + 34 + 40 + 40
    rest.add([cart.case], 104.0)
    assert rest.of(waiting) == 34 + 40 + 40 + 70
    rest.add([hand.case], 40.0)
    assert rest.of([[cart.case], [hand.case]]) == 34 + 40


def learning(make_case: CaseMaker, name: str, alone_s: float, iterations: int = 100) -> PlannedCase:
    case = replace(make_case(case_id=name), device="cuda", nproc_per_node=1, only_learning=True, iterations=iterations)
    return planned_case(case, wall_s=alone_s)


def test_what_trains_at_the_same_time_takes_as_long_as_its_block_and_not_one_after_another(
    make_case: CaseMaker,
) -> None:
    first, second = ([learning(make_case, f"{block}/{size}", 100.0) for size in range(2)] for block in "ab")
    rest = Rest([*first, *second])
    cases = [[item.case for item in block] for block in (first, second)]
    assert rest.of(cases) == 200.0
    rest.add(cases[0], 160.0)  # with the kernels of its task
    assert rest.of([cases[1]]) == 100.0
    rest.add(cases[1], 150.0)
    assert rest.of([cases[0]]) == 150.0


@pytest.mark.parametrize("only_learning", [True, False])
def test_a_run_that_is_left_of_a_block_takes_its_own_time(make_case: CaseMaker, *, only_learning: bool) -> None:
    block = [learning(make_case, f"a/{alone_s}", alone_s) for alone_s in (180.0, 10.0, 2.0)]
    block = [replace(item, case=replace(item.case, only_learning=only_learning)) for item in block]
    longest, *others = cases = [item.case for item in block]
    rest = Rest(block)
    assert rest.of([cases]) == (180.0 if only_learning else 192.0)
    assert rest.of([[longest]]) == 180.0
    assert rest.of([[longest, others[0]], others]) == (190.0 if only_learning else 202.0)  # a rotated round


def test_a_run_that_did_not_fit_its_block_waits_again_and_changes_no_other_time(
    make_case: CaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = 100.0
    monkeypatch.setattr("suite.campaign.display.progress.time", SimpleNamespace(monotonic=lambda: now_s))
    small, large, after = (learning(make_case, f"a/{name}", 60.0) for name in ("small", "large", "after"))
    output = io.StringIO()
    cases = [item.case for item in (small, large)]
    reporter = Reporter(Console(file=output, width=160), [small, large, after], [[after.case], cases, [after.case]])
    for block in ([after.case], cases, [large.case], [after.case]):
        with reporter.block([(case, 0) for case in block]):
            now_s += 60
        reporter.ended([(plain_round(block[0], wall_time_s=60.0), "")])
    lines = output.getvalue().splitlines()
    ended = [line for line in lines if "completed" in line]
    assert [line.partition("]")[0] for line in lines] == [
        *("[1/4", "[1/4", "[2/4", "[3/4"),
        *("[2/4", "[3/4", "[3/4", "[4/4", "[4/4"),
    ]
    assert [line.rpartition("about ")[2] for line in ended[:-1]] == ["2:00 left)", "2:00 left)", "1:00 left)"]


def test_a_log_file_gets_a_line_at_start_and_end(make_case: CaseMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suite.campaign.display.progress.time", SimpleNamespace(monotonic=lambda: 100.0))
    item = planned(make_case, "a/1", 10.0)
    output = io.StringIO()
    reporter = Reporter(Console(file=output, width=160), [item], [[item.case]])
    with reporter.block([(item.case, 0)]) as (line,):
        line.update(2)
    record = plain_round(item.case, outcome="crashed", reason="rank 1: [oops]", exit_code=1, wall_time_s=12.0)
    reporter.ended([(record, "")])
    start, end, reason = output.getvalue().splitlines()
    assert start.startswith("[1/1] a/1 run 0 starting, 0:00 (elapsed 0:00, about 0:10 left)")
    assert end.startswith("[1/1] a/1 run 0: crashed in 0:12 (elapsed 0:00)")
    assert reason.strip() == "rank 1: [oops]"


def test_a_run_that_has_a_pace_says_itself_when_it_ends(make_case: CaseMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planned 16:00, in truth 10 s an iteration after the first, and a run of 30 s after it."""
    now_s = 100.0
    monkeypatch.setattr("suite.campaign.display.progress.time", SimpleNamespace(monotonic=lambda: now_s))
    long, after = planned(make_case, "a/1", 960.0), planned(make_case, "a/2", 30.0)
    long = replace(long, case=replace(long.case, iterations=20))
    reporter = Reporter(Console(file=io.StringIO(), width=160), [long, after], [[long.case], [after.case]])
    lines = []
    with reporter.block([(long.case, 0)]) as (line,):
        lines.append(line.text())
        now_s += 60  # of starting up, and of kernels in the first iteration
        line.update(1)
        lines.append(line.text())
        now_s += 70
        line.update(8)
        now_s += 6  # not heard of the ninth yet: 12 of 10 s are left but 6 s
        lines.append(line.text())
    assert [line.rpartition("about ")[2] for line in lines] == ["16:30 left)", "15:30 left)", "2:24 left)"]


def test_a_block_that_trains_at_the_same_time_ends_with_its_slowest_run(
    make_case: CaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first block on an H200: planned as one after another, its lines said 1:24 hours, and each another time."""
    now_s = 100.0
    monkeypatch.setattr("suite.campaign.display.progress.time", SimpleNamespace(monotonic=lambda: now_s))
    block = [learning(make_case, f"a/{name}", alone_s) for name, alone_s in (("fast", 90), ("slow", 90), ("late", 30))]
    after = learning(make_case, "b/1", 60.0)
    output = io.StringIO()
    cases = [item.case for item in block]
    reporter = Reporter(Console(file=output, width=160), [*block, after], [cases, [after.case]])
    with reporter.block([(case, 0) for case in cases]) as lines:
        fast, slow, late = lines
        assert {line.state() for line in lines} == {"starting, 0:00 (elapsed 0:00, about 2:30 left)"}
        now_s += 20
        fast.update(1)
        slow.update(1)
        now_s += 20
        fast.update(51)  # 20 s are left of it
        slow.update(21)  # 79 s
        assert {line.state().rpartition("about ")[2] for line in lines} == {"2:19 left)"}
        now_s += 39
        fast.update(100)
        slow.update(100)
        assert {line.state().rpartition("about ")[2] for line in lines} == {"1:11 left)"}  # one has not begun
        now_s += 40
        late.update(100)
        assert {line.state().rpartition("about ")[2] for line in lines} == {"1:00 left)"}
    reporter.ended([(plain_round(case, wall_time_s=119.0), "") for case in cases])
    ended = output.getvalue().splitlines()[-3:]
    assert [line.rpartition("about ")[2] for line in ended] == ["1:00 left)"] * 3
