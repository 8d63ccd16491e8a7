import io

from rich.console import Console

from suite.schema import CaseResult, Environment, PlannedCase, RankRecord, RunRecord
from suite.summary import print_agreement, print_plan, print_summary
from suite.upstream import Pair
from tests.conftest import CaseMaker


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
    for said in ("not here: needs 2 GPUs, available: 0", "about 6.0 GPU-minutes, 1:00 a round", "torchrun [x]"):
        assert said in printed
    assert "0 cases can run here: nothing to do." in printed
    assert "All 1: about 3:00 one after another, 6 GPU-minutes." in printed


def record(make_case: CaseMaker, environment: Environment, time_s: float | None) -> RunRecord:
    samples = {"iteration_time_s": (9.0, time_s, time_s)}
    ranks = tuple(RankRecord(rank=i, local_rank=i, phases_s={}, settings={}, samples=samples) for i in range(2))
    return RunRecord(
        case=make_case(), round=0, outcome="completed" if time_s else "crashed", reason=None if time_s else "oops",
        exit_code=0, started_utc=None, wall_time_s=1.0, environment=environment, ranks=ranks if time_s else (),
    )  # fmt: skip


def test_the_summary_leaves_out_what_was_not_measured(make_case: CaseMaker, environment: Environment) -> None:
    good = CaseResult(case=make_case(case_id="a/good"), rounds=(record(make_case, environment, 0.5),))
    bad = CaseResult(case=make_case(case_id="a/bad"), rounds=(record(make_case, environment, None),))
    target, output = console()
    print_summary(target, [good, bad])
    rows = {
        line.split()[0]: line.split()[1:] for line in output.getvalue().splitlines() if line.strip().startswith("a/")
    }
    frames = make_case().frames_per_iteration
    assert rows["a/good"] == ["1x2", "64", "1/1", "0.5", f"{frames / 0.5:,.0f}", "completed"]
    assert rows["a/bad"] == ["1x2", "64", "0/1", "-", "-", "crashed"]


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
