"""What is said of learning: rewards of seeds, references, ranks beside one, stacks beside Newton. Pure."""

import statistics
from collections.abc import Collection, Mapping, Sequence

from reports.analysis.seeds import Judged, Seeds, Size
from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.tuning.learned_beside import Beside, several_beside_one, stacks_beside_newton
from reports.topics.tuning.learning_page import results_of_all_sets, seeds_of
from reports.topics.tuning.seeds_chart import points


def learning_figures(version: Version) -> Mapping[str, Figures]:
    """Return size -> figures, with pairs of sizes, and ``all`` for the answer of the page."""
    of_seeds = seeds_of(version)
    results = results_of_all_sets(version)
    ranks = {f"{_pair(each)}: {each.other.world_size} ranks beside one": each for each in several_beside_one(results)}
    stacks = {
        f"{_pair(each)}, {each.other.world_size} ranks: {each.other.stack}": each
        for each in stacks_beside_newton(results)
    }
    return {
        **({"all": _all(of_seeds)} if of_seeds else {}),
        **{_size(found.size): _seeds(found) for found in of_seeds},
        **{of: _beside(pair) for of, pair in {**ranks, **stacks}.items()},
    }


def _size(size: Size) -> str:
    alone = "" if size.world_size is None else f", {size.world_size} ranks alone"
    work = f"{size.frames_per_iteration} frames, {size.optimiser_steps} steps"
    return f"{size.task}, {size.rl_library}, {size.stack}, {work}{alone}"


def _pair(pair: Beside) -> str:
    return f"{_size(pair.size)}, {pair.base.assets} assets"


def _all(of_seeds: Sequence[Seeds]) -> Figures:
    judged = [one for found in of_seeds for one in found.judged]
    return {
        "runs": sum(found.num_runs for found in of_seeds),
        "sizes": len(of_seeds),
        "rewards_compared": sum(len(one.measured) for one in judged),
        "rewards_below": sum(one.measured_below for one in judged),
    }


def _seeds(found: Seeds) -> Figures:
    return {
        "seeds": len(found.curves),
        "runs": found.num_runs,
        "last_rewards": {str(seed): _last(rewards) for seed, rewards in found.curves.items()},
        "references": {str(one.reference.iterations): _judged(one) for one in found.judged},
        "curves": {str(seed): [[at["iteration"], at["reward"]] for at in points(found, seed)] for seed in found.curves},
    }


def _last(rewards: Sequence[float | None]) -> float | None:
    return next((reward for reward in reversed(rewards) if reward is not None), None)


def _judged(one: Judged) -> Figures:
    runs = [reward for of_seed in one.seed_rewards.values() for reward in of_seed if reward is not None]
    return {
        "reward_at_least": one.reference.reward_at_least,
        "worst_median_best_run": [min(runs), statistics.median(runs), max(runs)] if runs else None,
        "measured": _range(one.measured),
        "measured_below": one.measured_below,
    }


def _beside(pair: Beside) -> Figures:
    return {
        "iterations": pair.iterations,
        "rewards_of_base": _range(pair.base_rewards.values()),
        "rewards_of_other": _range(pair.other_rewards.values()),
        "shared_seeds": len(pair.differences),
        **with_interval("difference", pair.difference),
        "learns": pair.verdict,
    }


def _range(rewards: Collection[float]) -> Figures:
    return {"number": len(rewards), "least": min(rewards, default=None), "most": max(rewards, default=None)}
