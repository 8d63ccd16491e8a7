"""Reductions of telemetry against closed forms."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from suite.external.nvml.values import GpuReading
from suite.records.rank_file import Clock, RankFile
from suite.records.telemetry import Span, Window, counted_energy_j, integrated_energy_j, summarise, window_of
from suite.records.telemetry_file import HostReading, RankReading, Sample, TelemetryContent
from suite.schema.observations import Spread, TelemetrySummary
from suite.schema.record import RunRecord
from tests.conftest import CaseMaker
from tests.fixtures.results.generated_results import make_record

UNIX_S = 1_700_000_000.0  # wall clock at zero of the monotonic one
WINDOW = Window(spans=(Span(start_s=1.03, end_s=11.03),))  # between samples

GpuAt = Callable[[float], tuple[GpuReading, ...]]


def sample(time_s: float, gpus: tuple[GpuReading, ...] = (), ranks: tuple[RankReading, ...] = ()) -> Sample:
    return Sample(
        time_unix_s=UNIX_S + time_s,
        monotonic_s=time_s,
        reading_time_s=0.001,
        sampler_cpu_s=0.2 + 0.004 * time_s,
        gpus=gpus,
        ranks=ranks,
        host=HostReading(
            cpu_percent=50.0,
            stolen_percent=1.0 if time_s > 6 else 0.0,
            others_percent=8.0 if time_s > 6 else -2.0,
            memory_used_gb=time_s,
            load=None,
        ),
    )


def content(gpus_at: GpuAt = lambda _: (), *, until_s: float = 13.0) -> TelemetryContent:
    """Samples at 5 Hz from 0 s on."""
    times_s = [number / 5 for number in range(round(until_s * 5) + 1)]
    return TelemetryContent(rate_hz=5.0, samples=[sample(time_s, gpus_at(time_s)) for time_s in times_s])


def constant(index: int = 0, *, power_w: float | None = 300.0, counter_w: float | None = 300.0) -> GpuAt:
    """One GPU that takes ``power_w``, while its counter grows by ``counter_w``."""
    return lambda time_s: (
        GpuReading(index=index, power_w=power_w, energy_j=None if counter_w is None else 5e6 + counter_w * time_s),
    )


def both(first: GpuAt, second: GpuAt) -> GpuAt:
    return lambda time_s: first(time_s) + second(time_s)


def one_gpu(gpus_at: GpuAt) -> TelemetrySummary:
    return summarise(content(gpus_at), WINDOW, frames=6000, num_gpus=1)


def test_constant_power_is_power_times_time() -> None:
    seen = one_gpu(constant())
    (gpu,) = seen.gpus
    assert gpu.energy_counter_j == gpu.energy_integrated_j == seen.energy_j == 3000.0
    assert gpu.energy_disagreement == 0.0
    assert seen.energy_agrees is True
    assert seen.frames_per_joule == 2.0
    assert gpu.power_w == seen.power_w == Spread(min=300.0, mean=300.0, max=300.0)
    assert seen.notes == ()


@pytest.mark.parametrize(
    ("until_s", "first_s", "last_s", "energy_j"),
    [
        (10.0, 99.0, 99.0, None),  # the sampler ended too early
        (13.0, 0.0, 1.05, None),  # it began too late
        (13.0, 5.0, 7.3, None),  # more than 2 s without a value
        (13.0, 5.0, 6.0, 3000.0),  # a short gap is bridged
    ],
)
def test_energy_is_unknown_when_the_window_is_not_covered(
    until_s: float, first_s: float, last_s: float, energy_j: float | None
) -> None:
    """No sample from ``first_s`` to ``last_s``; 300 W."""
    times_s = [number / 5 for number in range(round(until_s * 5) + 1)]
    kept_s = [time_s for time_s in times_s if not first_s <= time_s <= last_s]
    assert integrated_energy_j([(time_s, 300.0) for time_s in kept_s], WINDOW) == energy_j
    assert counted_energy_j([(time_s, 300.0 * time_s) for time_s in kept_s], WINDOW) == energy_j


def with_gap(first_s: float, last_s: float) -> GpuAt:
    """100 W until 6 s and 300 W from then on, not read from ``first_s`` to ``last_s``."""

    def gpus_at(time_s: float) -> tuple[GpuReading, ...]:
        power_w = None if first_s <= time_s <= last_s else 100.0 if time_s < 6 else 300.0
        return (GpuReading(index=0, power_w=power_w),)

    return gpus_at


def test_the_mean_power_is_the_energy_over_time_though_readings_are_missing() -> None:
    """The mean of the readings there are would take the half in which they are missing for less than it was."""
    seen = one_gpu(with_gap(6.1, 7.5))
    assert seen.power_w is not None
    assert seen.energy_j == pytest.approx(seen.power_w.mean * seen.window_s, rel=1e-5)
    assert seen.gpus[0].power_w == seen.power_w == Spread(min=100.0, mean=202.6, max=300.0)


def test_counter_that_starts_anew_is_unknown_and_power_takes_its_place() -> None:
    def reloaded(time_s: float) -> tuple[GpuReading, ...]:
        return (GpuReading(index=0, power_w=300.0, energy_j=300 * (time_s if time_s < 6 else time_s - 6)),)

    seen = one_gpu(reloaded)
    assert seen.gpus[0].energy_counter_j is None
    assert seen.gpus[0].energy_disagreement is None
    assert (seen.energy_j, seen.energy_agrees) == (3000.0, None)


@pytest.mark.parametrize(("counter_w", "agrees"), [(286.0, True), (316.0, False)])
def test_counter_and_power_are_held_against_each_other(counter_w: float, agrees: bool) -> None:
    seen = one_gpu(constant(power_w=300.0, counter_w=counter_w))
    expected = (300 - counter_w) / max(300, counter_w)
    assert seen.gpus[0].energy_disagreement == pytest.approx(expected, rel=1e-5)
    assert seen.energy_agrees is agrees
    assert seen.energy_j == pytest.approx(10 * counter_w)  # the counter is taken, flagged or not
    assert len(seen.notes) == (0 if agrees else 1)


def test_energy_of_all_gpus_is_by_one_method() -> None:
    seen = summarise(
        content(both(constant(0, counter_w=310.0), constant(1, counter_w=None))), WINDOW, frames=6000, num_gpus=2
    )
    assert seen.energy_j == 6000.0
    assert seen.frames_per_joule == 1.0
    assert seen.energy_agrees is None
    assert seen.power_w is not None
    assert seen.power_w.mean == 600.0
    lacking = summarise(content(constant()), WINDOW, frames=6000, num_gpus=2)
    assert lacking.gpus[0].energy_counter_j == 3000.0
    assert (lacking.energy_j, lacking.power_w, lacking.frames_per_joule, lacking.energy_agrees) == (None,) * 4


def test_a_case_without_gpus_has_host_and_ranks_but_no_energy() -> None:
    samples = content()
    for number, at in enumerate(samples.samples):
        ranks = (RankReading(rank=0, cpu_percent=100 * (at.monotonic_s > 6), threads=8), RankReading(rank=1))
        samples.samples[number] = replace(at, ranks=ranks)
    seen = summarise(samples, WINDOW, frames=6000, num_gpus=0)
    assert (seen.gpus, seen.energy_j, seen.power_w, seen.frames_per_joule) == ((), None, None, None)
    assert seen.num_samples == 50  # 1.2 to 11.0 s
    assert seen.host_cpu_percent == Spread(min=50.0, mean=50.0, max=50.0)
    assert seen.host_memory_used_gb == Spread(min=1.2, mean=6.1, max=11.0)
    assert seen.host_load is None
    assert seen.host_stolen_percent == Spread(min=0.0, mean=0.5, max=1.0)
    assert seen.stolen_share == 0.01
    assert seen.host_others_percent == 3.0
    assert seen.ranks[0].cpu_percent == Spread(min=0.0, mean=50.0, max=100.0)
    assert seen.ranks[0].threads == Spread(min=8.0, mean=8.0, max=8.0)
    assert seen.ranks[0].memory_gb is None
    assert (seen.ranks[1].cpu_percent, seen.ranks[1].threads) == (None, None)
    hidden = samples.samples[20]  # a container hides ranks, whose time would count as others'
    samples.samples[20] = replace(hidden, host=replace(hidden.host, others_percent=None))
    assert summarise(samples, WINDOW, frames=6000, num_gpus=0).host_others_percent is None


def test_shares_of_slowdowns() -> None:
    def gpus_at(time_s: float) -> tuple[GpuReading, ...]:
        if time_s < 3.1:  # 10 samples of the window
            return (GpuReading(index=0, slowdowns=("idle",)),)
        if time_s < 5.1:  # 10
            return (GpuReading(index=0, slowdowns=("power_cap", "thermal_software")),)
        if time_s < 6.1:  # 5
            return (GpuReading(index=0, slowdowns=("power_cap",)),)
        if time_s < 8.1:  # 10
            return (GpuReading(index=0, slowdowns=None),)
        return (GpuReading(index=0, slowdowns=("clocks_setting",)),)  # 15, and no throttling

    (gpu,) = one_gpu(gpus_at).gpus
    assert gpu.throttled_share == 15 / 40
    shares = {"idle": 10 / 40, "power_cap": 15 / 40, "thermal_software": 10 / 40, "clocks_setting": 15 / 40}
    assert gpu.slowdown_shares == shares


def test_unusable_content_is_refused() -> None:
    with pytest.raises(ValueError, match="none of 66 samples lies in the window of 5 s"):
        summarise(content(), Window(spans=(Span(start_s=100.0, end_s=105.0),)), frames=1, num_gpus=0)
    killed = content(until_s=3.0)
    with pytest.raises(ValueError, match=r"10 samples cover 1.97 of the 10 s of the window"):
        summarise(killed, WINDOW, frames=1, num_gpus=0)
    held_up = content()
    held_up.samples = [sample for sample in held_up.samples if not 4.1 < sample.monotonic_s < 9.9]
    with pytest.raises(ValueError, match=r"cover 4 of the 10 s of the window"):
        summarise(held_up, WINDOW, frames=1, num_gpus=0)
    torn = content()
    torn.corrupt = "line 3 is not an event"
    with pytest.raises(ValueError, match="line 3"):
        summarise(torn, WINDOW, frames=1, num_gpus=0)
    twice = TelemetryContent(samples=[*content().samples, *content().samples])
    with pytest.raises(ValueError, match="order of time"):
        summarise(twice, WINDOW, frames=1, num_gpus=0)


@pytest.fixture
def record(make_case: CaseMaker) -> RunRecord:
    """Two ranks: the first iteration takes 5 s, nine more 0.5 s each."""
    return make_record(make_case(iterations=10), iteration_time_s=0.5)


def test_the_window_is_that_of_rank_0s_iterations(record: RunRecord) -> None:
    rank_0 = RankFile(rank=0, clock=Clock(event="clock", zero_monotonic_s=1000.0))
    window, frames = window_of(record, rank_0)
    assert window.spans == (Span(start_s=1005.5, end_s=1009.5),)
    assert frames == 8 * record.case.frames_per_iteration
    with pytest.raises(ValueError, match="clock"):
        window_of(record, RankFile(rank=0))
