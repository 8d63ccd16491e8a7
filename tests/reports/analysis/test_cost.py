"""What a point costs, on campaigns whose price is known."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from reports.analysis.cost import Price, cost, union_s
from reports.sets.version import read_version
from reports.topics.hardware.tables import cost_table
from suite.schema.record import Case, CaseResult, RunRecord
from suite.schema.transport import Transport
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_results import GPU_HOST, make_case, make_record, write_results

HOST = replace(GPU_HOST, gpus=GPU_HOST.gpus[:4])
T0 = datetime(2026, 11, 21, tzinfo=UTC)


def at(case: Case, index: int, minute: float, minutes: float = 1.0, **changed: object) -> RunRecord:
    started = (T0 + timedelta(minutes=minute)).isoformat(timespec="seconds")
    record = replace(make_record(case, index=index), started_utc=started, wall_time_s=60 * minutes, environment=HOST)
    return replace(record, **changed)  # type: ignore[arg-type]


def case_of(world_size: int, series: str = "ant-weak", **changed: object) -> Case:
    return make_case(series, scaling="weak", world_size=world_size, device="cuda", num_envs_global=128, **changed)  # type: ignore[arg-type]


ONE, TWO = case_of(1), case_of(2)
SIDE_BY_SIDE = [
    CaseResult(case=ONE, rounds=(at(ONE, 0, 0.0), at(ONE, 1, 1.0))),
    CaseResult(case=TWO, rounds=(at(TWO, 0, 0.0), at(TWO, 1, 1.0))),
]


def test_cases_side_by_side_cost_the_host_once() -> None:
    found = cost(SIDE_BY_SIDE)
    assert found is not None
    assert (found.points, found.measured_points) == (2, 0)
    assert found.spent == Price(in_use=2 * 1 + 2 * 2, host=2 * 4)
    assert found.loop == Price(in_use=6, host=4 * 4)
    assert (found.in_use_ratio, found.host_ratio) == (1.0, 0.5)


def test_a_round_that_saw_its_own_gpu_only_is_on_the_same_host() -> None:
    blind = replace(HOST, gpus=HOST.gpus[:1], num_cpus=16)
    results = [CaseResult(case=ONE, rounds=tuple(replace(item, environment=blind) for item in SIDE_BY_SIDE[0].rounds))]
    found = cost([*results, SIDE_BY_SIDE[1]])
    assert found is not None
    assert (found.spent.host, found.loop.host) == (8, 16)


def test_emulated_nodes_share_one_host() -> None:
    nodes = case_of(2, nnodes=2)
    transport = Transport(library="nccl", emulated=True)
    alone = CaseResult(case=nodes, rounds=(at(nodes, 0, 0.0), at(nodes, 1, 1.0)))
    emulated = CaseResult(case=nodes, rounds=tuple(replace(one, transport=transport) for one in alone.rounds))
    found = [cost([one]) for one in (alone, emulated)]
    assert [one and one.spent.host for one in found] == [2 * 4 * 2, 2 * 4]


def test_twins_controls_and_failures_cost_and_are_no_points() -> None:
    control = replace(ONE, case_id="c/1", workload="all_reduce")
    failed = at(ONE, 2, 10.0, minutes=3.0, outcome="crashed")
    results = [
        CaseResult(case=ONE, rounds=(*SIDE_BY_SIDE[0].rounds, failed)),
        CaseResult(case=control, rounds=(at(control, 0, 20.0, minutes=5.0),)),
    ]
    twins = [CaseResult(case=replace(ONE, case_id="t/1-aa"), rounds=(at(ONE, 0, 30.0, minutes=7.0),))]
    found = cost(results, twins=twins)
    assert found is not None
    assert (found.points, found.spent.in_use, found.loop.in_use) == (1, 2 + 3 + 5 + 7, 2)
    assert found.spent.host == 4 * (2 + 3 + 5 + 7)
    assert found.in_use_ratio == pytest.approx(8.5)


def test_what_upstream_took_is_taken_where_it_is_known() -> None:
    found = cost(SIDE_BY_SIDE, upstream_wall_s={ONE.case_id: 120.0})
    assert found is not None
    assert found.measured_points == 1
    assert found.loop == Price(in_use=2 * 2 * 1 + 2 * 1 * 2, host=(2 * 2 + 2 * 1) * 4)
    assert "timed for 1 of 2 points" in cost_table([("", found)]).text
    both = cost(SIDE_BY_SIDE, upstream_wall_s={ONE.case_id: 60.0, TWO.case_id: 60.0})
    assert both is not None
    assert "timed" not in cost_table([("", both)]).text


def test_waiting_between_two_commands_costs_nothing() -> None:
    assert union_s([(5.0, 6.0), (0.0, 2.0), (1.0, 3.0), (1.5, 1.6)]) == 4.0
    assert union_s([]) == 0.0


def test_rounds_in_turns_pay_for_their_own_turns_only() -> None:
    version = read_version(RESULTS.parent / "2026.12", name="2026.12")
    (one,) = (one for one in version.sets if one.folder.name == "h200-x2")
    found = cost(one.campaign.results, twins=one.campaign.twins)
    assert found is not None
    runs = [record for each in (*one.campaign.results, *one.campaign.twins) for record in each.completed]
    walls_min = sum((record.wall_time_s or 0.0) * record.case.world_size for record in runs) / 60
    assert 0.1 * walls_min < found.spent.in_use < 0.5 * walls_min  # eight cases took turns on two GPUs


def test_without_gpus_or_points_there_is_no_cost() -> None:
    on_cpu = replace(ONE, device="cpu")
    lost = CaseResult(case=ONE, rounds=(at(ONE, 0, 0.0, outcome="oom"),))
    assert cost([CaseResult(case=on_cpu, rounds=(at(on_cpu, 0, 0.0),)), lost]) is None
    assert "No training was timed on GPUs" in cost_table([]).text


def test_the_table_has_both_prices_per_point() -> None:
    found = cost(SIDE_BY_SIDE)
    assert found is not None
    table, assumed = cost_table([("here", found), ("there", found)]).text.split("\nProcesses of the loop")
    rows = [line.split("\t") for line in table.splitlines()[1:]]
    assert rows == [[where, "2", "3.0", "3.0", "1.00", "4.0", "8.0", "0.50"] for where in ("here", "there")]
    assert "for 0 of 4 points" in assumed


def test_a_page_reads_twins_and_times_of_upstream_beside_the_cases(tmp_path: Path) -> None:
    write_results(SIDE_BY_SIDE, tmp_path)
    twin = replace(ONE, case_id="t/1-aa")
    write_results([CaseResult(case=twin, rounds=(at(twin, 0, 9.0),))], tmp_path / "x")
    (tmp_path / "x" / "cases").rename(tmp_path / "a_a")
    pair = {"configuration_id": ONE.case_id, "run": 0, "ours_s": 1.0, "theirs_s": 1.0, "library_s": None}
    pairs = [{**pair, "theirs_wall_s": wall_s} for wall_s in (90.0, None, 150.0)]
    (tmp_path / "upstream.json").write_text(json.dumps(pairs), encoding="utf-8")
    for folder in (tmp_path, tmp_path / "cases"):
        found = read_version(folder, name="").sets[0].campaign.cost
        assert found is not None
        assert (found.measured_points, found.spent.in_use) == (1, 7)
        assert found.loop.in_use == 2 * 2 * 1 + 2 * 1 * 2  # the median of what is known
