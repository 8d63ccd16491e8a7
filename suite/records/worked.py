"""Which parts worked in a campaign, for each task and RL library: the result where speeds mean nothing. Pure.

A speed means something only on a GPU that a training does not share. Elsewhere a campaign shows that physics,
rendering, the learning step and the exchange of gradients work, and nothing more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from suite.schema.record import CaseResult, RunRecord

State = Literal["works", "failed", "none", "unknown"]
Part = Literal["physics", "rendering", "trains", "equal gradients"]

SYMBOLS: Final[Mapping[State, str]] = {"works": "✓", "failed": "✗", "none": "-", "unknown": "?"}
LEGEND: Final[Mapping[State, str]] = {
    "works": "works",
    "failed": "failed",
    "none": "the task has no camera, or nothing ran with several processes",
    "unknown": "a run ended before it got there",
}
TIMES_MEAN_NOTHING: Final = (
    "Only what is learned counts here: runs may have trained at the same time, and their times mean nothing."
)
SPEEDS_MEAN_NOTHING: Final = "These speeds are meaningless: a speed counts on a GPU alone."


@dataclass(frozen=True, kw_only=True)
class Worked:
    """One task with one RL library on one stack."""

    task: str
    rl_library: str
    stack: str
    ranks: tuple[int, ...]  # numbers of ranks with which a round completed
    parts: Mapping[Part, State]
    failed: tuple[RunRecord, ...]  # rounds that began and did not complete

    @property
    def name(self) -> str:
        return f"{self.task}, {self.rl_library}" + ("" if self.stack == "kitless" else f", {self.stack}")


def has_speeds(results: Iterable[CaseResult]) -> bool:
    """Whether any round completed whose speed means something."""
    return any(result.case.has_speed and result.completed for result in results)


def only_learning(results: Iterable[CaseResult]) -> bool:
    """Whether a campaign was to show only what is learned; of its cases all were, or none."""
    return any(result.case.only_learning for result in results)


def what_worked(results: Sequence[CaseResult]) -> tuple[Worked, ...]:
    """Return a row for each task and library that trained, in the order of the results; none if no round began."""
    rounds: dict[tuple[str, str, str], list[RunRecord]] = {}
    for result in results:
        case = result.case
        if case.learns and result.begun:
            rounds.setdefault((case.task, case.rl_library, case.stack), []).extend(result.begun)
    return tuple(
        Worked(
            task=task,
            rl_library=rl_library,
            stack=stack,
            ranks=tuple(sorted({record.case.world_size for record in records if record.outcome == "completed"})),
            parts=_parts(records),
            failed=tuple(record for record in records if record.outcome != "completed"),
        )
        for (task, rl_library, stack), records in rounds.items()
    )


def _parts(records: Sequence[RunRecord]) -> dict[Part, State]:
    """State of each part: it failed if it failed in any round, and works if it worked in one and failed in none."""
    rounds = [_parts_of(record) for record in records]

    def weight(state: State, part: Part) -> int:
        # Any round shows whether the task has a camera; a round with one rank shows nothing about several.
        last: tuple[State, State] = ("none", "unknown") if part == "rendering" else ("unknown", "none")
        return ("failed", "works", *last).index(state)

    return {part: min((states[part] for states in rounds), key=partial(weight, part=part)) for part in rounds[0]}


def _parts_of(record: RunRecord) -> dict[Part, State]:
    physics, rendering, learning = (_checked(record, feature) for feature in ("physics", "cameras", "learning"))
    if rendering == "unknown" and physics != "unknown":
        rendering = "none"  # a rank runs all its checks, or none
    case = record.case
    done = [rank for rank in record.ranks if rank.parameters_sha256 and rank.num_iterations == case.iterations]
    has_trained = len(done) == case.num_processes
    gradients: State = "unknown"
    if case.world_size == 1:
        gradients = "none"
    elif has_trained:  # the ranks began with equal parameters, so they stay equal if all gradients were
        gradients = "works" if len({rank.parameters_sha256 for rank in record.ranks}) == 1 else "failed"
    has_reason = "failed" in (physics, rendering, gradients)
    # A round that did not complete did not train to its end, whatever the reason.
    has_failed = learning == "failed" or (record.outcome != "completed" and not has_reason)
    trains: State = "failed" if has_failed else "works" if has_trained else "unknown"
    return {"physics": physics, "rendering": rendering, "trains": trains, "equal gradients": gradients}


def _checked(record: RunRecord, feature: str) -> State:
    verdicts = {check.verdict for rank in record.ranks for check in rank.validity if check.feature == feature}
    return "failed" if "failure" in verdicts else "works" if "ok" in verdicts else "unknown"
