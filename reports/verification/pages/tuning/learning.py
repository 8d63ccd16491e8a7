"""*What is learned*: rewards of seeds beside their references, ranks beside one, and stacks beside Newton."""

import math
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.figures import rewards
from reports.verification.figures.references import ASSETS, Size, references_of, reward_at_least, size_of
from reports.verification.figures.series import trains
from reports.verification.finding import Json
from reports.verification.pages.tuning import learned_beside
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.stored_version import StoredVersion

LEARNING: Final = "learning"  # role of a set that was made to see what is learned
MOST_POINTS: Final = 60  # of a curve, so every so many iterations of a longer one are drawn

type Run = tuple[int, rewards.Curve]  # its seed, and its rewards


def figures(version: StoredVersion) -> dict[str, Json]:
    made: dict[Size, list[Run]] = {}
    for stored in _cases(version, are_made_for_it=True):
        if stored.case["assets"] == ASSETS:
            made.setdefault(size_of(stored), []).extend(_runs(stored))
    sizes = {size: runs for size, runs in made.items() if runs}
    measured = [stored for stored in _cases(version, are_made_for_it=False) if trains(stored)]
    found = {str(size): _of_size(version, size, runs, measured) for size, runs in sizes.items()}
    judged = [one for row in found.values() for one in row["references"].values()]
    every = {
        "runs": sum(map(len, sizes.values())),
        "sizes": len(sizes),
        "rewards_compared": sum(one["measured"]["number"] for one in judged),
        "rewards_below": sum(one["measured_below"] for one in judged),
    }
    return {**({"all": every} if sizes else {}), **found, **learned_beside.figures(version)}


def _cases(version: StoredVersion, *, are_made_for_it: bool) -> Iterator[StoredCase]:
    """Yield the cases of all sets that were made to see what is learned, or of all others."""
    sets = (one for one in version.sets if (version.role(one) == LEARNING) == are_made_for_it)
    return (stored for one in sets for stored in one.of_report)


def _runs(stored: StoredCase) -> list[Run]:
    return [(rewards.seed_of(record), rewards.curve_of(record)) for record in rewards.learned_rounds(stored)]


def _of_size(version: StoredVersion, size: Size, runs: Sequence[Run], measured: Sequence[StoredCase]) -> Json:
    alike = [stored for stored in measured if stored.case["assets"] == ASSETS and size_of(stored) == size]
    elsewhere = [curve for stored in alike for _, curve in _runs(stored)]
    first = dict(reversed(runs))
    known = {seed: [reward for reward in curve if reward is not None] for seed, curve in sorted(first.items())}
    references: Json = {}
    for reference in references_of(size):
        least, iterations = reward_at_least(reference, size, version.sets), reference["iterations"]
        own = sorted(_after([curve for _, curve in runs], iterations))
        others = {*_after(elsewhere, iterations)}
        references[str(iterations)] = {
            "reward_at_least": least,
            "worst_median_best_run": [own[0], formulas.median(own), own[-1]] if own else None,
            "measured": _range(others),
            "measured_below": sum(reward < least for reward in others),
        }
    return {
        "seeds": len(first),
        "runs": len(runs),
        "last_rewards": {str(seed): curve[-1] if curve else None for seed, curve in known.items()},
        "references": references,
        "curves": {str(seed): drawn(curve) for seed, curve in sorted(first.items())},
    }


def drawn(curve: rewards.Curve) -> list[list[float]]:
    """Return iteration and reward, to four digits, of each point of a curve that the chart shows."""
    step = max(1, math.ceil(len(curve) / MOST_POINTS))
    shown = ((at, curve[at]) for at in range(0, len(curve), step))
    return [[at, float(f"{reward:.3e}")] for at, reward in shown if reward is not None]


def _after(curves: Sequence[rewards.Curve], iterations: int) -> list[float]:
    found = (rewards.reward_after(curve, iterations) for curve in curves if len(curve) >= iterations)
    return [reward for reward in found if reward is not None]


def _range(values: Collection[float]) -> Json:
    return {"number": len(values), "least": min(values, default=None), "most": max(values, default=None)}
