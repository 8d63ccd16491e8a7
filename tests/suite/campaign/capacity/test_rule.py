"""The search for capacity against GPUs whose memory and throughput are known in closed form."""

from collections.abc import Callable

import pytest

from suite.campaign.capacity import RESOLUTION, Capacity, Trial, next_size

Gpu = Callable[[int], Trial]


def saturating(half: int) -> Callable[[int], float]:
    """Frames a second that approach 1e6: half of it at ``half`` environments."""
    return lambda num_envs: 1e6 * num_envs / (num_envs + half)


def gpu(fps: Callable[[int], float], *, memory: int | None = None) -> Gpu:
    def run(num_envs: int) -> Trial:
        if memory is not None and num_envs > memory:
            return Trial(num_envs=num_envs, outcome="oom", fps=None)
        return Trial(num_envs=num_envs, outcome="completed", fps=fps(num_envs))

    return run


def search(run: Gpu, *, start: int, granularity: int = 1, most: int | None = None) -> tuple[Capacity, list[int]]:
    trials: list[Trial] = []
    while not isinstance(step := next_size(trials, start=start, granularity=granularity, most=most), Capacity):
        assert step not in {trial.num_envs for trial in trials}, "tried twice"
        assert len(trials) < 40
        trials.append(run(step))
    return step, [trial.num_envs for trial in trials]


@pytest.mark.parametrize("memory", [1024, 1500, 2047, 2048, 5000, 100_000])
def test_memory_is_found_to_within_the_resolution(memory: int) -> None:
    answer, tried = search(gpu(float, memory=memory), start=1024, granularity=64)
    assert answer.bound == "memory"
    assert answer.num_envs is not None
    assert answer.beyond is not None
    assert answer.num_envs <= memory < answer.beyond
    assert answer.beyond - answer.num_envs <= RESOLUTION * answer.num_envs
    assert answer.fps == answer.num_envs
    assert all(num_envs % 64 == 0 for num_envs in tried)


def test_what_is_tried_is_doubled_and_then_halved() -> None:
    answer, tried = search(gpu(float, memory=5000), start=1024)
    assert tried == [1024, 2048, 4096, 8192, 6144, 5120, 4608]
    assert (answer.num_envs, answer.beyond) == (4608, 5120)


def test_throughput_that_saturates_ends_the_search_where_it_is_good_enough() -> None:
    """f(n) = n / (n + h): a doubling gains less than 5 % from n = 9 h on, and 0.95 of f(32 h) needs 12 h."""
    half = 1000
    answer, tried = search(gpu(saturating(half)), start=1000)
    assert answer.bound == "throughput"
    assert tried[:6] == [1000, 2000, 4000, 8000, 16000, 32000]
    target = 0.95 * saturating(half)(32000)
    assert answer.num_envs is not None
    assert answer.beyond is not None
    assert saturating(half)(answer.beyond) < target <= saturating(half)(answer.num_envs)
    exact = half * target / (1e6 - target)
    assert answer.beyond < exact <= answer.num_envs <= exact * (1 + RESOLUTION)


def test_throughput_that_falls_keeps_the_peak() -> None:
    peaked = {64: 1.0, 128: 2.0, 256: 3.0, 512: 1.0}
    answer, tried = search(gpu(lambda num_envs: peaked.get(num_envs, 2.0)), start=64)
    assert (answer.num_envs, answer.fps, answer.beyond) == (256, 3.0, 240)
    assert tried == [64, 128, 256, 512, 192, 224, 240]


def test_the_search_stops_where_it_was_told_to() -> None:
    answer, tried = search(gpu(float), start=64, most=300)
    assert (answer.bound, answer.num_envs, answer.beyond, tried) == ("asked", 256, None, [64, 128, 256])
    assert "still rises at 256" in answer.reason
    answer, tried = search(gpu(float), start=64, most=100)
    assert (answer.bound, answer.num_envs, tried) == ("asked", 64, [64])
    assert answer.reason == "only 64 were tried, and the limit is 100"  # of one nobody can tell


@pytest.mark.parametrize("fails_at", [64, 128, 256, 192])
def test_another_failure_ends_the_search_and_is_not_taken_for_memory(fails_at: int) -> None:
    whole = gpu(float, memory=300)

    def run(num_envs: int) -> Trial:
        return Trial(num_envs=num_envs, outcome="crashed", fps=None) if num_envs == fails_at else whole(num_envs)

    answer, tried = search(run, start=64)
    if fails_at == 192:  # never tried: 256 fit
        assert answer.bound == "memory"
        return
    assert (answer.bound, answer.beyond, tried[-1]) == ("failure", fails_at, fails_at)
    assert answer.num_envs == (None if fails_at == 64 else fails_at // 2)
    assert "crashed" in answer.reason


def test_too_little_memory_for_the_first_number_has_no_answer() -> None:
    answer, tried = search(gpu(float, memory=10), start=64)
    assert (answer.num_envs, answer.fps, answer.bound, answer.beyond, tried) == (None, None, "memory", 64, [64])
