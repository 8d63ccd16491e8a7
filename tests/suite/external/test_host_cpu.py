"""CPU use of a host from counters whose answer is known, and from this machine's own."""

from collections.abc import Sequence

import pytest

from suite.external.machine import Counters, CpuUse, HostCpu


def at(time_s: float, *, cores: int = 2, idle: float, stolen: float = 0.0, own: float = 0.0) -> Counters:
    """Counters of a host that has been as idle, as robbed and as much sampled, each in cores, all the time."""
    return Counters(
        total_s=cores * time_s,
        idle_s=idle * time_s,
        stolen_s=stolen * time_s,
        own_s=own * time_s,
        monotonic_s=1000 + time_s,
    )


def between(first: Counters, second: Counters, rank_percents: Sequence[float | None] = ()) -> CpuUse:
    readings = iter((first, second))
    host = HostCpu(lambda: next(readings))
    assert host.use(()) == CpuUse()  # nothing to count from
    return host.use(rank_percents)


@pytest.mark.parametrize("interval_s", [0.2, 20.0])
def test_shares_do_not_depend_on_how_often_one_looks(interval_s: float) -> None:
    use = between(at(1.0, idle=0.8), at(1.0 + interval_s, idle=0.8), [70.0, 50.0])
    assert (use.busy, use.stolen, use.others) == pytest.approx((60.0, 0.0, 0.0), abs=1e-6)


def test_others_have_what_neither_ranks_nor_sampler_nor_hypervisor_had() -> None:
    first, second = (at(time_s, cores=4, idle=0.5, stolen=0.4, own=0.1) for time_s in (3.0, 5.0))
    use = between(first, second, [100.0, 100.0])
    assert (use.busy, use.stolen, use.others) == pytest.approx((87.5, 10.0, 25.0))


@pytest.mark.parametrize("rank_percents", [(), (100.0, None)])
def test_without_the_time_of_every_rank_that_of_others_is_not_known(rank_percents: Sequence[float | None]) -> None:
    use = between(at(1.0, idle=0.5), at(2.0, idle=0.5), rank_percents)
    assert use.busy == pytest.approx(75)
    assert use.others is None


def test_counters_that_stand_still_say_nothing() -> None:
    assert between(at(1.0, idle=0.5), at(1.0, idle=0.5), [100.0]) == CpuUse()
