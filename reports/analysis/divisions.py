"""What each change of the open division gains on what upstream ships, and whether it still learns. Pure.

A tuned case is compared with the closed case of its series with the same library, stack, device and topology. More
frames a second that learn less are no gain. So there are also the rewards after equal frames, equal iterations and
equal time, and how much sooner the tuned case has the reward of the closed one. A round's time to it is the round's own
iterations at its own pace. With one seed, the ratio is that of means. With a seed for each round, rounds of
one number have the same seed, and the ratio is the mean over seeds: a seed that learns late does so in both cases.
"""

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reports.analysis.learning_curves import by_seed, mean_rewards
from reports.analysis.rows import case_times
from reports.analysis.time_to_reward import (
    CONVERGED_SHARE,
    SMOOTHING_WINDOW,
    converged_reward,
    iterations_to_reward,
    reward_of_all,
)
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import Estimate, Rounds, mean_of, ratio_of
from suite.statistics.series_model import SetModel
from suite.statistics.speed import Speed, speed_of
from suite.statistics.twins import is_twin

type Learning = Literal["the same", "not surely less", "less", "unknown"]
type Equal = Literal["frames", "iterations", "time"]
type _Curve = tuple[float | None, ...]  # mean reward of every iteration

_MIN_RUNS: Final = 3  # of either side, before all of one below all of the other says something: by chance 1 in 20


@dataclass(frozen=True, kw_only=True)
class Rewards:
    """At one point of training. One value for each run that learned otherwise: the same seed mostly learns the same."""

    closed: tuple[float, ...]
    tuned: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A case of the open division beside its closed one."""

    case: Case
    closed: Case
    changes: tuple[str, ...]
    rounds: int
    closed_rounds: int
    fps: float | None
    closed_fps: float | None
    gain: Estimate | None  # throughput over the closed case's; None where one of them has no completed round
    learns_the_same: bool  # every round of both has the same reward in every iteration
    rewards: Mapping[Equal, Rewards]
    # The most that every round of the closed case reached, or with several seeds ``converged_reward``. None: no rise.
    target: float | None
    iterations_to_target: tuple[float | None, float | None]  # closed and tuned, medians; None: not every run had it
    time_to_target_s: tuple[Estimate | None, Estimate | None]  # the same over rounds; no start-up, no compilation
    reached: tuple[int, int]  # how many of the tuned runs had it, of how many that learned otherwise, see Rewards
    sooner: Estimate | None  # the closed case's time to the target over the tuned one's
    seeds: tuple[int, int]  # how many seeds the completed rounds of the closed and of the tuned case had

    @property
    def speed(self) -> Speed:
        return speed_of(self.gain)

    @property
    def learning(self) -> Learning:
        """``less`` where after equal frames every run is below every run of the closed case, and there are enough."""
        if self.learns_the_same:
            return "the same"
        at = self.rewards["frames"]
        if min(len(at.tuned), len(at.closed)) < _MIN_RUNS:
            return "unknown"
        return "less" if max(at.tuned) < min(at.closed) else "not surely less"


def gains(
    results: Sequence[CaseResult], twins: Sequence[CaseResult] = (), *, mark: float = CONVERGED_SHARE
) -> tuple[Gain, ...]:
    """One per case of the open division that has a closed case beside it, in the order of ``results``.

    ``twins``: of the A/A run; those among ``results`` count too. ``mark``: of the rise, with several seeds.
    """
    closed = {
        _beside(result.case): result
        for result in results
        if result.case.division == "closed" and not is_twin(result.case)
    }
    model = SetModel.of((*results, *twins))
    return tuple(
        _gain(result, closed[_beside(result.case)], model, mark)
        for result in results
        if result.case.division == "open" and _beside(result.case) in closed
    )


def _beside(case: Case) -> tuple[str, ...]:
    return case.series, case.rl_library, case.stack, case.device, case.topology, case.kernel_cache


def _gain(tuned: CaseResult, closed: CaseResult, model: SetModel, mark: float) -> Gain:
    case, base = tuned.case, closed.case
    times, base_times = case_times(tuned), case_times(closed)
    pace_s, base_pace_s = _pace_s(times), _pace_s(base_times)
    of_rounds, base_of_rounds = _by_round(tuned), _by_round(closed)
    curves, base_curves = _distinct(of_rounds), _distinct(base_of_rounds)
    seeds = len(by_seed(closed)), len(by_seed(tuned))
    target = converged_reward(base_curves, mark) if min(seeds) > 1 else reward_of_all(base_curves)
    needed, base_needed = _iterations(curves, target), _iterations(base_curves, target)
    to_target_s = _times_to_target_s(of_rounds, needed, times)
    base_to_target_s = _times_to_target_s(base_of_rounds, base_needed, base_times)
    return Gain(
        case=case,
        closed=base,
        changes=changes(case, base),
        rounds=len(times),
        closed_rounds=len(base_times),
        fps=None if pace_s is None else case.frames_per_iteration / pace_s,
        closed_fps=None if base_pace_s is None else base.frames_per_iteration / base_pace_s,
        gain=model.speedup(case, base),
        learns_the_same=bool(curves) and curves == base_curves and len(curves) == 1,
        rewards=_rewards(curves, base_curves, _equals(case, base, pace_s, base_pace_s)),
        target=target,
        iterations_to_target=(_median_of_all(base_needed), _median_of_all(needed)),
        time_to_target_s=(_mean_of(base_to_target_s.values()), _mean_of(to_target_s.values())),
        reached=(sum(iterations is not None for iterations in needed.values()), len(curves)),
        sooner=_sooner(base_to_target_s, to_target_s, has_seeds=min(seeds) > 1),
        seeds=seeds,
    )


def changes(case: Case, base: Case) -> tuple[str, ...]:
    """What the tuned case has that the closed one has not, as a reader would set it."""
    sizes = ("num_envs", "minibatch_size", "optimiser_steps", "trainings_per_gpu")
    names = (*sizes, "cpu_threads", "pin_cpus", "deterministic")
    changed = [f"{name}={getattr(case, name)}" for name in names if getattr(case, name) != getattr(base, name)]
    # A size of minibatches is an override too.
    said = f".minibatch_size={case.minibatch_size}"
    tokens = (token for token in case.overrides if token not in base.overrides and not token.endswith(said))
    packages = (package for package in case.with_packages if package not in base.with_packages)
    return (*changed, *packages, *tokens)


# --- learning ----------------------------------------------------------------------------------------------------


def _pace_s(times_s: Rounds) -> float | None:
    return mean_of(times_s.values()).value if times_s else None


def _by_round(result: CaseResult) -> dict[int, _Curve]:
    return {record.round: tuple(mean_rewards(record)) for record in result.completed}


def _distinct(of_rounds: Mapping[int, _Curve]) -> tuple[_Curve, ...]:
    """Of the rounds that report rewards, each curve once."""
    return tuple(dict.fromkeys(curve for curve in of_rounds.values() if any(reward is not None for reward in curve)))


def _iterations(curves: Sequence[_Curve], target: float | None) -> dict[_Curve, int | None]:
    """How many iterations each curve takes to the target; None for one that ends before it gets there."""
    if target is None:
        return dict.fromkeys(curves)
    return {curve: iterations_to_reward(curve, target, smoothing_window=SMOOTHING_WINDOW) for curve in curves}


def _median_of_all(needed: Mapping[_Curve, int | None]) -> float | None:
    """None where a curve ends before it gets there."""
    known = [iterations for iterations in needed.values() if iterations is not None]
    return statistics.median(known) if known and len(known) == len(needed) else None


def _sooner(closed_s: Rounds, tuned_s: Rounds, *, has_seeds: bool) -> Estimate | None:
    if not closed_s or not tuned_s:
        return None
    if not has_seeds:
        return ratio_of(closed_s.values(), tuned_s.values())
    return _mean_of([closed_s[number] / tuned_s[number] for number in closed_s.keys() & tuned_s.keys()])


def _times_to_target_s(of_rounds: Mapping[int, _Curve], needed: Mapping[_Curve, int | None], times_s: Rounds) -> Rounds:
    """Seconds of every completed round; empty where one of them ends before it gets there."""
    found = {
        number: iterations * times_s[number]
        for number, curve in of_rounds.items()
        if (iterations := needed.get(curve)) is not None
    }
    return found if len(found) == len(of_rounds) else {}


def _mean_of(values: Collection[float]) -> Estimate | None:
    return mean_of(values) if values else None


def _equals(case: Case, base: Case, pace_s: float | None, base_pace_s: float | None) -> dict[Equal, tuple[int, int]]:
    """Iterations of the closed and of the tuned case after which the one that has less of it ends."""
    frames = min(one.frames_per_iteration * one.iterations for one in (case, base))
    both = min(case.iterations, base.iterations)
    ends: dict[Equal, tuple[int, int]] = {
        "frames": (frames // base.frames_per_iteration, frames // case.frames_per_iteration),
        "iterations": (both, both),
    }
    if pace_s is not None and base_pace_s is not None:
        # Whole iterations; the first, which compiles, counts as any other.
        time_s = min(case.iterations * pace_s, base.iterations * base_pace_s)
        ends["time"] = (min(base.iterations, round(time_s / base_pace_s)), min(case.iterations, round(time_s / pace_s)))
    return ends


def _rewards(
    curves: Sequence[_Curve], base_curves: Sequence[_Curve], ends: Mapping[Equal, tuple[int, int]]
) -> dict[Equal, Rewards]:
    return {
        equal: Rewards(closed=_at(base_curves, base_end), tuned=_at(curves, end))
        for equal, (base_end, end) in ends.items()
    }


def _at(curves: Sequence[_Curve], end: int) -> tuple[float, ...]:
    """Median reward of each curve over the iterations that end at ``end``; curves without any there are left out."""
    windows = (
        [reward for reward in curve[max(0, end - SMOOTHING_WINDOW) : end] if reward is not None] for curve in curves
    )
    return tuple(statistics.median(window) for window in windows if window)
