"""GENERATED scaling curves whose work, lag and all-reduce are known exactly."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from suite.schema.record import CaseResult, RankRecord, Scaling
from tests.generated_results import make_case, make_record

CALLS_BESIDE, CALLS_PER_STEP = 3, 2


def result_of(
    ranks: int,
    *,
    own_s: float,
    all_reduce_s: float,
    scaling: Scaling,
    optimiser_steps: int = 4,
    slowest: float = 0.0,
    rounds: int = 3,
) -> CaseResult:
    """Every iteration: ``own_s`` of work, the last rank ``slowest`` longer, and all-reduce."""
    case = make_case(
        "cartpole-strong",
        world_size=ranks,
        scaling=scaling,
        num_envs_global=65536 if scaling == "strong" else 64 * ranks,
        device="cuda",
        optimiser_steps=optimiser_steps,
    )

    def of_rank(rank: RankRecord) -> RankRecord:
        lag = slowest * own_s if rank.rank == ranks - 1 else 0.0
        waits_s = all_reduce_s + slowest * own_s - lag
        whole_s = own_s + lag + (waits_s if ranks > 1 else 0.0)
        count = case.iterations
        return replace(
            rank,
            samples={
                "iteration_time_s": (whole_s,) * count,
                "all_reduce_time_s": ((waits_s,) if ranks > 1 else (None,)) * count,
                "all_reduce_calls": (float(CALLS_BESIDE + CALLS_PER_STEP * optimiser_steps),) * count,
            },
        )

    records = [make_record(case, index=index) for index in range(rounds)]
    return CaseResult(
        case=case, rounds=tuple(replace(record, ranks=tuple(map(of_rank, record.ranks))) for record in records)
    )


def series(
    own_s: Callable[[int], float],
    *,
    scaling: Scaling,
    counts: Sequence[int] = (1, 2, 4, 8),
    all_reduce_time_s: float = 0.01,
    steps: Callable[[int], int] = lambda _: 4,
    slowest: float = 0.0,
) -> list[CaseResult]:
    return [
        result_of(
            ranks,
            own_s=own_s(ranks),
            all_reduce_s=all_reduce_time_s,
            scaling=scaling,
            optimiser_steps=steps(ranks),
            slowest=slowest if ranks > 1 else 0.0,
        )
        for ranks in counts
    ]


def amdahl(ranks: int) -> float:
    return 0.1 + 1.6 / ranks
