"""References of what a sound run learns: which there are, and what the samples of their sources give.

``tasks/catalog.toml`` says which there are and of which sets. It is read as what somebody published, like the results.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from reports.verification.figures import rewards
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet

CATALOG: Final = Path(__file__).parents[3] / "tasks" / "catalog.toml"
ASSETS: Final = "offline"  # of all runs that references are made of
MARGIN: Final = 0.1  # of the best seed's reward; the least that a reference lies below the worst
DIGITS: Final = 4  # of a reference in the catalog


class Size(NamedTuple):
    """What learning depends on, besides the seed; ``ranks`` is None where all ranks learn together."""

    task: str
    rl_library: str
    stack: str
    ranks: int | None
    frames: int
    steps: int

    def __str__(self) -> str:
        alone = "" if self.ranks is None else f", {self.ranks} ranks alone"
        return f"{self.task}, {self.rl_library}, {self.stack}, {self.frames} frames, {self.steps} steps{alone}"


def size_of(stored: StoredCase) -> Size:
    case = stored.case
    ranks = world_size(case) if "ranks_learn_alone" in _tasks().get(case["task"], {}) else None
    return Size(
        task=case["task"],
        rl_library=case["rl_library"],
        stack=case["stack"],
        ranks=ranks,
        frames=stored.frames,
        steps=case["optimiser_steps"],
    )


def references_of(size: Size) -> list[Json]:
    agent = _tasks().get(size.task, {}).get("agents", {}).get(size.rl_library, {})
    names = {"stack": size.stack, "world_size": size.ranks}
    names |= {"frames_per_iteration": size.frames, "optimiser_steps": size.steps}
    return [
        reference
        for reference in agent.get("learning_references", [])
        if all(reference.get(name) == value for name, value in names.items())
    ]


@cache
def _tasks() -> Mapping[str, Any]:
    tasks: Mapping[str, Any] = tomllib.loads(CATALOG.read_text(encoding="utf-8"))["tasks"]
    return tasks


def reward_at_least(reference: Json, size: Size, sets: Sequence[StoredSet]) -> float:
    """Return what the seeds of its sources give; what the catalog says where a source is not among ``sets``.

    As far below the worst seed as that one lies below the best, a tenth of the best at least. The worst run of a seed
    counts.
    """
    sources = [_named(pattern, sets) for pattern in reference["source"].split()]
    if not all(sources):
        return float(reference["reward_at_least"])
    worst: dict[int, float] = {}
    for seed, reward in _rewards(reference, size, (one for source in sources for one in source)):
        worst[seed] = min(reward, worst.get(seed, reward))
    low, high = min(worst.values()), max(worst.values())
    return round(low - max(high - low, MARGIN * abs(high)), DIGITS)


def _named(pattern: str, sets: Sequence[StoredSet]) -> list[StoredSet]:
    """Return the sets that a source such as ``reports/results/2026.11/cpu-learning-*`` is."""
    return [one for one in sets if fnmatch("/".join(one.folder.parts[-2:]), "/".join(Path(pattern).parts[-2:]))]


def _rewards(reference: Json, size: Size, sets: Iterable[StoredSet]) -> Iterable[tuple[int, float]]:
    iterations = reference["iterations"]
    for one in sets:
        for stored in one.of_report:
            case = stored.case
            is_kind = (case.get("division", "closed"), case.get("workload", "train")) == ("closed", "train")
            if is_kind and case["assets"] == ASSETS and size_of(stored) == size:
                for record in rewards.learned_rounds(stored):
                    curve = rewards.curve_of(record)
                    reward = rewards.reward_after(curve, iterations) if len(curve) >= iterations else None
                    if reward is not None:
                        yield rewards.seed_of(record), reward
