"""What each change of the open division gains on what upstream ships, and whether it still learns. Pure.

A tuned case is held against the closed case of its series with the same library, stack, device and topology. A faster
iteration that learns less is no gain, so the rewards after equal numbers of frames stand beside the throughput: those
of the iterations in which the case with fewer frames in all ends, averaged over a few iterations before.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from reports.analysis import case_times, speedup_of
from reports.learning_curves import mean_rewards
from reports.resampling import Estimate
from reports.tables import MISSING, Html, count, estimated, html_table, paragraph
from reports.thresholds import SMOOTHING_WINDOW
from suite.a_a import is_twin
from suite.schema import Case, CaseResult

type Learning = Literal["as well", "less", "unknown"]

_MIN_ROUNDS: Final = 3  # of either side, before all of one below all of the other says something: by chance 1 in 20


@dataclass(frozen=True, kw_only=True)
class Gain:
    """A case of the open division beside its closed one."""

    case_id: str
    closed_id: str
    changes: tuple[str, ...]
    closed_fps: float | None
    fps: float | None
    gain: Estimate | None  # throughput over the closed case's; None where one of them has no completed round
    frames: int  # at which the rewards are compared
    closed_rewards: tuple[float, ...]  # of the completed rounds that have one
    rewards: tuple[float, ...]

    @property
    def learning(self) -> Learning:
        """``less`` where every round is below every round of the closed case, and there are enough of them."""
        if min(len(self.rewards), len(self.closed_rewards)) < _MIN_ROUNDS:
            return "unknown"
        return "less" if max(self.rewards) < min(self.closed_rewards) else "as well"


def gains(results: Sequence[CaseResult]) -> tuple[Gain, ...]:
    """One per case of the open division that has a closed case beside it, in the order of ``results``."""
    closed = {
        _beside(result.case): result
        for result in results
        if result.case.division == "closed" and not is_twin(result.case)
    }
    return tuple(
        _gain(result, closed[_beside(result.case)])
        for result in results
        if result.case.division == "open" and _beside(result.case) in closed
    )


def _beside(case: Case) -> tuple[str, ...]:
    return case.series, case.rl_library, case.stack, case.device, case.topology


def _gain(tuned: CaseResult, closed: CaseResult) -> Gain:
    case, base = tuned.case, closed.case
    times, base_times = case_times(tuned), case_times(closed)
    work = case.frames_per_iteration / base.frames_per_iteration
    measured = bool(times.times_s and base_times.times_s)
    frames = min(item.frames_per_iteration * item.iterations for item in (case, base))
    return Gain(
        case_id=case.case_id,
        closed_id=base.case_id,
        changes=changes(case, base),
        closed_fps=_fps(base, list(base_times.times_s.values())),
        fps=_fps(case, list(times.times_s.values())),
        gain=speedup_of(times, base_times, work=work) if measured else None,
        frames=frames,
        closed_rewards=_rewards(closed, frames),
        rewards=_rewards(tuned, frames),
    )


def changes(case: Case, base: Case) -> tuple[str, ...]:
    """What the tuned case has that the closed one has not, as a reader would set it."""
    names = ("num_envs", "minibatch_size", "optimiser_steps", "cpu_threads", "pin_cpus")
    changed = [f"{name}={getattr(case, name)}" for name in names if getattr(case, name) != getattr(base, name)]
    return (*changed, *(token for token in case.overrides if token not in base.overrides))


def _fps(case: Case, times_s: Sequence[float]) -> float | None:
    return case.frames_per_iteration / statistics.median(times_s) if times_s else None


def _rewards(result: CaseResult, frames: int) -> tuple[float, ...]:
    """Mean reward of each round over the iterations that end at ``frames``; rounds without any are left out."""
    last = frames // result.case.frames_per_iteration
    found = []
    for record in result.completed:
        window = mean_rewards(record)[max(0, last - SMOOTHING_WINDOW) : last]
        if known := [reward for reward in window if reward is not None]:
            found.append(statistics.fmean(known))
    return tuple(found)


# --- the table ---------------------------------------------------------------------------------------------------


def gains_table(results: Sequence[CaseResult]) -> Html:
    """One row for each change; nothing where no case is tuned."""
    found = gains(results)
    if not found:
        return paragraph("Every case ran as upstream ships it: there is no open division here.")
    return html_table(
        ["Case", "Changed", "Learns", "Total FPS, closed", "Total FPS", "Gain", "Reward, closed", "Reward", "Frames"],
        (
            [
                gain.case_id,
                ", ".join(gain.changes),
                gain.learning,
                count(gain.closed_fps),
                count(gain.fps),
                estimated(gain.gain),
                _median(gain.closed_rewards),
                _median(gain.rewards),
                count(gain.frames),
            ]
            for gain in found
        ),
        label="The open division beside the closed one",
        num_text_columns=3,
    )


def _median(values: Sequence[float]) -> str:
    return f"{statistics.median(values):.3g}" if values else MISSING
