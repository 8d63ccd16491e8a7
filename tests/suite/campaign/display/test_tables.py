import io
from dataclasses import replace

from rich.console import Console

from suite.campaign.display.results import print_summary
from suite.schema.record import CaseResult, RunRecord
from suite.schema.telemetry import GpuTelemetry, Spread, TelemetrySummary
from tests.conftest import CaseMaker
from tests.fixtures.results.stored_rounds import plain_rank, plain_round


def console() -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    return Console(file=output, width=200), output


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
