"""Shares of an iteration, on times whose answer is known."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import pytest

from suite.schema.record import RankRecord, RunRecord
from suite.statistics.attribution import Attribution, attribution
from tests.conftest import CaseMaker
from tests.fixtures.results.stored_rounds import plain_rank, plain_round

TIMES = {
    "iteration_time_s": 10.0,
    "collection_time_s": 6.0,
    "learning_time_s": 3.5,
    "environment_step_time_s": 4.0,
    "simulate_time_s": 2.0,
    "render_time_s": 1.0,
    "inference_time_s": 0.5,
    "all_reduce_time_s": 1.5,
}


def rank_of(number: int, iterations: int = 2, **changes: float | Sequence[float] | None) -> RankRecord:
    """The times above in every iteration, some changed; a sequence gives one for each."""
    samples: dict[str, Any] = {
        name: tuple(value) if isinstance(value, Sequence) else (value,) * iterations
        for name, value in {**TIMES, **changes}.items()
    }
    return plain_rank(number, **samples)


def record_of(make_case: CaseMaker, *ranks: RankRecord) -> RunRecord:
    return plain_round(make_case(nproc_per_node=len(ranks)), *ranks)


def whole(shares: Attribution) -> float:
    return float(sum(share for name, share in asdict(shares).items() if name != "rank" and share is not None))


def test_one_rank_has_no_waiting(make_case: CaseMaker) -> None:
    (shares,) = attribution(record_of(make_case, rank_of(0, all_reduce_time_s=None)))
    assert asdict(shares) == pytest.approx(
        {
            "rank": 0,
            "simulate": 0.2,
            "render": 0.1,
            "environment": 0.1,
            "infer": 0.05,
            "learn": 0.35,
            "all_reduce": None,
            "waiting": None,
            "other": 0.2,  # 1.5 s of the rollout and 0.5 s of neither
        }
    )
    assert whole(shares) == pytest.approx(1.0)


def test_waiting_is_what_exceeds_the_least_of_the_same_iteration(make_case: CaseMaker) -> None:
    """The ranks take turns at being late: each waits 2 s once, though both reduce for 5 s in all."""
    ranks = (rank_of(0, 3, all_reduce_time_s=(9.0, 1.5, 3.5)), rank_of(1, 3, all_reduce_time_s=(9.0, 3.5, 1.5)))
    for shares in attribution(record_of(make_case, *ranks)):
        assert (shares.all_reduce, shares.waiting) == pytest.approx((0.15, 0.1))
        assert (shares.learn, whole(shares)) == pytest.approx(((7.0 - 5.0) / 20.0, 1.0))


def test_a_part_without_a_time_is_missing_and_its_time_stays_in_the_whole(make_case: CaseMaker) -> None:
    """Older stored results lack these parts."""
    old = rank_of(0, simulate_time_s=None, render_time_s=None, inference_time_s=None, all_reduce_time_s=None)
    (shares,) = attribution(record_of(make_case, old))
    assert (shares.simulate, shares.render, shares.infer) == (None, None, None)
    assert (shares.environment, shares.other) == pytest.approx((0.4, 0.25))
    assert whole(shares) == pytest.approx(1.0)


def test_only_marked_iterations_of_the_window_count(make_case: CaseMaker) -> None:
    learned = rank_of(0, 3, learning_time_s=(0.0, 2.5, 3.5), all_reduce_time_s=None, marked=(0.0, 0.0, 1.0))
    record = record_of(make_case, learned)
    assert attribution(record)[0].learn == pytest.approx(0.35)
    with pytest.raises(ValueError, match="rank 0"):
        attribution(record_of(make_case, rank_of(0, learning_time_s=None)))
