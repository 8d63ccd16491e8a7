import io
from dataclasses import replace

import pytest
from rich.console import Console

from suite.campaign.display.tables import (
    print_agreement,
    print_noise,
    print_plan,
    print_rounds,
    print_rule,
    print_slowed_cores,
    print_summary,
)
from suite.campaign.runs.upstream import Pair
from suite.records.store import load_results
from suite.schema.record import CaseResult, Environment, PlannedCase, RunRecord, Workload
from suite.schema.telemetry import GpuTelemetry, Spread, TelemetrySummary
from suite.statistics.aa_noise import TwinPair
from suite.statistics.stopping_rule import Rule
from tests.conftest import CaseMaker
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_results import failed_result, make_case, make_record, make_result
from tests.fixtures.results.stored_rounds import plain_rank, plain_round


def console() -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    return Console(file=output, width=200), output


def test_the_plan_gives_cost_and_command_also_of_what_cannot_run_here(
    make_case: CaseMaker, environment: Environment
) -> None:
    case = make_case(device="cuda")
    item = PlannedCase(
        case=case, rounds=3, infeasible="needs 2 GPUs, available: 0", estimated_gpu_minutes=6.0, estimated_wall_s=60.0
    )
    target, output = console()
    print_plan(target, [item], ["torchrun [x]"], environment)
    printed = output.getvalue()
    for said in ("not here: needs 2 GPUs, available: 0", "about 1:00 a round, 6.0 GPU-minutes in all", "torchrun [x]"):
        assert said in printed
    assert ", 3 rounds\n" in printed
    assert "0 cases can run here: nothing to do." in printed
    assert "All 1: about 3:00 one after another, 6 GPU-minutes." in printed


@pytest.mark.parametrize(("workload", "steps"), [("train", True), ("async_pipeline", True), ("policy_rollout", False)])
def test_the_plan_names_optimiser_steps_only_where_something_learns(
    make_case: CaseMaker, environment: Environment, workload: Workload, *, steps: bool
) -> None:
    case = replace(make_case(), workload=workload)
    item = PlannedCase(case=case, rounds=3, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=60.0)
    target, output = console()
    print_plan(target, [item], [None], environment)
    assert ("optimiser steps an iteration" in output.getvalue()) == steps
    assert (f"  nothing is trained: {workload}\n" in output.getvalue()) != steps


def test_the_plan_says_when_each_round_has_seeds_of_its_own(make_case: CaseMaker, environment: Environment) -> None:
    case = replace(make_case(), seed_per_round=True)
    item = PlannedCase(case=case, rounds=3, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=60.0)
    target, output = console()
    print_plan(target, [item], [None], environment)
    assert ", 3 rounds, each with seeds of its own\n" in output.getvalue()


def test_what_nobody_knows_the_cost_of_is_something_to_do(make_case: CaseMaker, environment: Environment) -> None:
    known = PlannedCase(case=make_case(), rounds=3, infeasible=None, estimated_gpu_minutes=None, estimated_wall_s=60.0)
    unknown = replace(known, estimated_wall_s=None)
    for items, said in (([unknown], "1 of unknown cost"), ([known, unknown], "about 3:00 one after another, 1 of")):
        target, output = console()
        print_plan(target, items, [None] * len(items), environment)
        assert f"can run here: {said}" in output.getvalue()


def record(make_case: CaseMaker, time_s: float | None) -> RunRecord:
    if time_s is None:
        return plain_round(make_case(), outcome="crashed", reason="oops", wall_time_s=1.0)
    ranks = (plain_rank(rank, iteration_time_s=(9.0, time_s, time_s)) for rank in range(2))
    return plain_round(make_case(), *ranks, wall_time_s=1.0)


def test_the_summary_leaves_out_what_was_not_measured(make_case: CaseMaker) -> None:
    good = CaseResult(case=make_case(case_id="a/good"), rounds=(record(make_case, 0.5),))
    bad = CaseResult(case=make_case(case_id="a/bad"), rounds=(record(make_case, None),))
    target, output = console()
    print_summary(target, [good, bad])
    rows = {
        line.split()[0]: line.split()[1:] for line in output.getvalue().splitlines() if line.strip().startswith("a/")
    }
    frames = make_case().frames_per_iteration
    assert rows["a/good"] == ["1x2", "64", "1/1", "0.5", f"{frames / 0.5:,.0f}", "completed"]
    assert rows["a/bad"] == ["1x2", "64", "0/1", "-", "-", "crashed"]


def test_power_and_frames_per_joule_are_shown_where_gpus_were_seen(make_case: CaseMaker) -> None:
    seen = TelemetrySummary(
        window_start_unix_s=0.0, window_s=10.0, rate_hz=5.0, num_samples=50, gpus=(GpuTelemetry(index=0),),
        power_w=Spread(min=500.0, mean=612.4, max=700.0), frames_per_joule=1234.5,
    )  # fmt: skip
    plain = record(make_case, 0.5)
    with_gpus = CaseResult(case=make_case(case_id="a/gpus"), rounds=(replace(plain, telemetry=seen),))
    partly = replace(seen, power_w=None, frames_per_joule=None)
    unknown = CaseResult(case=make_case(case_id="a/unknown"), rounds=(replace(plain, telemetry=partly),))
    without = CaseResult(case=make_case(case_id="a/none"), rounds=(plain,))
    target, output = console()
    print_summary(target, [with_gpus, unknown, without])
    lines = output.getvalue().splitlines()
    rows = {line.split()[0]: line.split()[-3:-1] for line in lines if line.strip().startswith("a/")}
    assert rows == {"a/gpus": ["612", "1,234"], "a/unknown": ["-", "-"], "a/none": ["-", "-"]}
    assert "frames/J" in output.getvalue()
    target, output = console()
    print_summary(target, [without])
    assert "frames/J" not in output.getvalue()


def test_the_agreement_shows_direct_and_bracketed_differences() -> None:
    pairs = [
        Pair(case_id="a/1", round=0, ours_s=1.10, theirs_s=1.08, library_s=1.10),
        Pair(case_id="a/1", round=1, ours_s=1.06, theirs_s=1.04, library_s=1.06),
        Pair(case_id="b/1", round=0, ours_s=1.0, theirs_s=1.0, library_s=None),
    ]
    target, output = console()
    print_agreement(target, pairs)
    rows = {line.split()[0]: line.split()[1:] for line in output.getvalue().splitlines() if "/1" in line}
    assert rows["a/1"] == ["2", "+1.89%", "+0.00%", "+0.00%", "+0.00%", "+0.000%"]
    assert rows["b/1"] == ["1", "+0.00%", "-", "+0.00%", "+0.00%", "-"]


def printed_rounds(*results: CaseResult) -> list[str]:
    target, output = console()
    print_rounds(target, results)
    return [line.strip() for line in output.getvalue().splitlines()]


def test_each_case_says_why_it_ended_and_how_well_its_median_is_known() -> None:
    result = make_result(make_case(), 1.0, 1.002, 1.004, 0.999, 1.001, 1.003)
    assert printed_rounds(replace(result, ended_because="precise enough: x")) == [
        result.case.case_id,
        "rounds: precise enough: x",
        "median between 0.9995 and 1.003 s/iteration at 95 % (half-width 0.2%)",
        "warm start: 20.0 s (6 of 6 rounds)",
    ]


def test_a_cold_start_says_how_many_kernels_it_compiled() -> None:
    result = make_result(make_case(), 1.0, 1.0, 1.0)
    rounds = tuple(
        replace(record, ranks=tuple(replace(rank, kernels_compiled=count) for rank in record.ranks))
        for record, count in zip(result.rounds, (57, 1, 0), strict=True)
    )
    starts = [line for line in printed_rounds(replace(result, rounds=rounds)) if "start" in line]
    assert starts == [
        "cold start: 20.0 s, kernels compiled: 1 to 57 (2 of 3 rounds)",
        "warm start: 20.0 s (1 of 3 rounds)",
    ]


def test_a_cold_start_and_a_flag_stand_beside_the_case() -> None:
    case = make_case(iterations=3)
    cold = make_record(case, index=0, iteration_time_s=4.0)
    lines = printed_rounds(CaseResult(case=case, rounds=(cold, make_record(case, index=1, iteration_time_s=0.5))))
    assert lines[1:] == [
        "cold start: 50.0 s (1 of 2 rounds)",
        "warm start: 15.0 s (1 of 2 rounds)",
        "flag: rounds 0, 1: 2 iterations after the first are too few to tell a steady part; 4 are needed",
    ]


def test_what_is_odd_about_a_single_round_is_said_though_that_it_is_short_is_counted_alone() -> None:
    case = make_case(iterations=3)
    seen = TelemetrySummary(window_start_unix_s=0.0, window_s=9.0, rate_hz=5.0, num_samples=9, host_others_percent=49.0)
    record = replace(make_record(case, index=0, iteration_time_s=1.0), telemetry=seen)
    *short, odd = printed_rounds(CaseResult(case=case, rounds=(record,)))
    assert "1 of them is too short" in " ".join(short)
    assert odd == f"{case.case_id}: round 0: other processes took up to 49% of the host's CPU time"


def test_cases_of_one_round_share_a_line_and_a_failed_case_is_not_there() -> None:
    long, short = make_case(), make_case("ant-weak", scaling="weak", iterations=3)
    too_short = CaseResult(case=short, rounds=(make_record(short, index=0, iteration_time_s=1.0),))
    failed = failed_result(long, outcome="crashed", reason="x")
    assert " ".join(printed_rounds(make_result(long, 1.0), too_short, failed)) == (
        "2 cases with one completed round: the spread between rounds is unknown, and 1 of them is too short "
        "or unsettled to show a steady part."
    )


def test_the_rule_is_printed_only_where_it_is_one() -> None:
    target, output = console()
    print_rule(target, Rule(rounds=3))
    assert output.getvalue() == ""
    print_rule(target, Rule(rounds=3, precision=0.01, max_rounds=10, budget_s=90.0))
    assert output.getvalue().strip() == (
        "After 3 rounds a case goes on until the half-width of the 95 % interval of its ratio to the baseline of "
        "its series (of a baseline: of its median) is at most 1 %, "
        "or it has 10 rounds, or 1.5 minutes are over."
    )


def test_the_noise_budget_is_printed() -> None:
    target, output = console()
    pair = TwinPair(case_id="a/1", times_s=(1.0, 1.02, 0.99), twin_times_s=(0.98, 0.97, 1.01))
    print_noise(target, [pair])
    assert output.getvalue().splitlines() == [
        "Repeat measurement of a/1: 1 and 0.98 s/iteration (-2.00%, 3 and 3 rounds)",
        "Measurement noise: 3.06%. Medians differ by at most this in 95 of 100 ways to split these rounds in two.",
        "Smaller differences are within noise.",
    ]


def test_slowed_cores_are_said_once_for_the_campaign() -> None:
    sweep = RESULTS / "h200-x2-envs"
    target, output = console()
    print_slowed_cores(target, load_results(sweep))
    assert output.getvalue().startswith("Cores were shared or slowed: after 108 of 135 marked iterations a fixed piece")
    quiet, nothing = console()
    print_slowed_cores(quiet, [make_result(make_case(), 0.5)])
    assert nothing.getvalue() == ""
