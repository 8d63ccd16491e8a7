from dataclasses import replace

import pytest

from reports.analysis.curves import interconnect_of
from reports.analysis.pairs_of_cases import nodes_side_by_side, stacks_side_by_side
from reports.analysis.rows import case_rows
from reports.display.pair_tables import signed_percent
from reports.topics.tasks import page as series_pages
from suite.schema.record import CaseResult
from suite.schema.transport import Transport
from suite.statistics.intervals import Estimate
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_result,
    node_results,
    stack_results,
)


def test_stacks_are_held_against_newton_at_the_same_ranks_and_environments() -> None:
    pairs = stacks_side_by_side(stack_results())
    assert [(pair.base.case.stack, pair.case.case.stack, pair.case.case.world_size) for pair in pairs] == [
        ("kitless", "ovphysx", 1), ("kitless", "ovphysx", 2)
    ]  # fmt: skip
    for pair in pairs:
        assert pair.over_base is not None
        assert pair.over_base.value == pytest.approx(0.5)
        assert pair.over_base.interval is not None
        assert pair.over_base.interval[0] <= 0.5 <= pair.over_base.interval[1]


def test_two_nodes_are_held_against_one_and_cost_a_quarter() -> None:
    (pair,) = nodes_side_by_side(node_results())
    assert (pair.base.case.nnodes, pair.case.case.nnodes, pair.case.case.world_size) == (1, 2, 4)
    assert pair.slower_by is not None
    assert pair.slower_by.value == pytest.approx(0.25)
    assert signed_percent(pair.slower_by).startswith("+25.0% (+2")
    low, high = pair.slower_by.interval or (0.0, 0.0)
    assert low <= 0.25 <= high


def test_a_ratio_and_its_interval_become_what_takes_longer() -> None:
    """Computed by hand: 1 / 0.8 - 1, from 1 / 1 - 1 to 1 / 0.5 - 1."""
    (pair,) = nodes_side_by_side(node_results())
    slower = replace(pair, over_base=Estimate(value=0.8, interval=(0.5, 1.0))).slower_by
    assert slower is not None
    assert (slower.value, *(slower.interval or ())) == pytest.approx((0.25, 0.0, 1.0))


def test_one_round_has_no_interval_and_failures_no_ratio() -> None:
    (pair,) = nodes_side_by_side(node_results(rounds=1))
    assert pair.slower_by is not None
    assert pair.slower_by.interval is None
    one, single, spread = node_results()
    crashed = failed_result(spread.case, outcome="crashed", reason="generated")
    (pair,) = nodes_side_by_side([one, single, crashed])
    assert (pair.over_base, pair.slower_by) == (None, None)
    assert signed_percent(pair.slower_by) == "n/a"


def test_unlike_cases_are_no_pair() -> None:
    assert stacks_side_by_side(full_results()) == nodes_side_by_side(full_results()) == ()
    newton, physx, *_ = stack_results()
    tuned = replace(physx.case, num_envs=2048, num_envs_global=2048)
    assert stacks_side_by_side([newton, make_result(tuned, 0.5)]) == ()


def emulated(result: CaseResult) -> CaseResult:
    crossed = Transport(library="nccl", interfaces=("lo",), between_nodes=("host_memory",), emulated=True)
    return replace(result, rounds=tuple(replace(record, transport=crossed) for record in result.rounds))


def test_the_interconnect_is_what_the_library_said() -> None:
    one, _, spread = node_results()
    crossed = Transport(library="nccl", within_node=("nvlink",))
    said = replace(one, rounds=tuple(replace(record, transport=crossed) for record in one.rounds))
    assert [interconnect_of(result) for result in (one, said)] == [None, "nvlink"]
    assert interconnect_of(emulated(spread)) == "emulated (host memory)"


def test_emulated_nodes_have_a_line_of_their_own() -> None:
    one, _, spread = node_results()
    for result, curve in ((spread, "rsl_rl, 2 nodes"), (emulated(spread), "rsl_rl, 2 nodes, emulated")):
        (row,) = (row for row in case_rows([one, node_results()[1], result]) if row.nnodes > 1)
        assert row.curve == curve


def test_the_same_ranks_on_one_node_and_on_two_are_not_sped_up() -> None:
    """The fewest ranks once had 100 %, next to sets with a baseline of one rank."""
    nodes = committed_version()
    nodes = replace(nodes, sets=tuple(one for one in nodes.sets if one.name == "h200-x2-nodes"))
    text = series_pages.cases(nodes.series("ant-weak")).text
    assert "Interconnect" in text
    assert "Speed-up" not in text
    assert "100.0 %" not in text
