"""What runs of several seeds learned, beside the references made of them and the measured rounds of that size. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from reports.analysis.learning_curves import by_seed, learned_rounds, mean_rewards
from suite.matrix.catalog import LearningReference, load_catalog
from suite.records.learning_check import REFERENCE_ASSETS, reward_at
from suite.schema.record import Case, CaseResult

type Known = Callable[[Case], Sequence[LearningReference]]  # of the catalog, of all sizes


class Size(NamedTuple):
    """What learning depends on, besides the seed."""

    task: str
    rl_library: str
    stack: str
    world_size: int | None  # None where all ranks learn together
    frames_per_iteration: int
    optimiser_steps: int

    @classmethod
    def of(cls, case: Case) -> "Size":
        ranks = load_catalog().ranks_of_learning(case)
        return cls(case.task, case.rl_library, case.stack, ranks, case.frames_per_iteration, case.optimiser_steps)

    @classmethod
    def of_reference(cls, reference: LearningReference, case: Case) -> "Size":
        """``case``: any of its task and library."""
        return cls(
            case.task,
            case.rl_library,
            reference.stack,
            reference.world_size,
            reference.frames_per_iteration,
            reference.optimiser_steps,
        )


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A reference, and what measured rounds of its size had at that iteration. No round without rewards there."""

    reference: LearningReference
    seed_rewards: Mapping[int, tuple[float | None, ...]]  # of every run of a seed, which other machines may have made
    measured: tuple[float, ...]  # each reward once

    @property
    def measured_below(self) -> int:
        return sum(reward < self.reference.reward_at_least for reward in self.measured)


@dataclass(frozen=True, kw_only=True)
class Seeds:
    """All runs of one size. ``curves``: mean reward of each iteration of a seed's first run."""

    size: Size
    case: Case  # any of them
    curves: Mapping[int, tuple[float | None, ...]]
    num_runs: int
    judged: tuple[Judged, ...]


def seeds(learned: Iterable[CaseResult], measured: Sequence[CaseResult], known: Known) -> tuple[Seeds, ...]:
    """``learned``: of sets made to see what is learned; ``measured``: of all others. Sizes in their first order.

    Only of the assets that references are of: another robot learns otherwise.
    """
    runs: dict[Size, dict[int, list[CaseResult]]] = {}
    for result in learned:
        if result.case.assets == REFERENCE_ASSETS:
            for seed, of_seed in by_seed(result).items():
                runs.setdefault(Size.of(result.case), {}).setdefault(seed, []).append(of_seed)
    return tuple(_seeds(size, dict(sorted(of_size.items())), measured, known) for size, of_size in runs.items())


def _seeds(size: Size, runs: Mapping[int, Sequence[CaseResult]], measured: Sequence[CaseResult], known: Known) -> Seeds:
    case = next(iter(runs.values()))[0].case
    alike = [
        result
        for result in measured
        if Size.of(result.case) == size and result.case.learns and result.case.assets == REFERENCE_ASSETS
    ]
    return Seeds(
        size=size,
        case=case,
        curves={seed: tuple(mean_rewards(learned_rounds(of_seed[0])[0])) for seed, of_seed in runs.items()},
        num_runs=sum(len(learned_rounds(result)) for of_seed in runs.values() for result in of_seed),
        judged=tuple(
            _judged(reference, runs, alike) for reference in known(case) if Size.of_reference(reference, case) == size
        ),
    )


def _judged(
    reference: LearningReference, runs: Mapping[int, Sequence[CaseResult]], measured: Sequence[CaseResult]
) -> Judged:
    until = reference.iterations
    return Judged(
        reference=reference,
        seed_rewards={
            seed: tuple(reward for result in of_seed for reward in _rewards(result, until))
            for seed, of_seed in runs.items()
        },
        measured=tuple(
            dict.fromkeys(reward for result in measured for reward in _rewards(result, until) if reward is not None)
        ),
    )


def _rewards(result: CaseResult, until: int) -> list[float | None]:
    """Of every round that learned, as a reference judges it; None for one that ended before."""
    curves = map(mean_rewards, learned_rounds(result))
    return [reward_at(means, until) if len(means) >= until else None for means in curves]
