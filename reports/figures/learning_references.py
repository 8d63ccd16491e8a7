"""What runs with several seeds say every sound run learns, as entries of ``tasks/catalog.toml``.

``nox -s learning_references -- RESULTS... --at 60 --at 150``: one results folder for each seed, of matrix ``learning``,
whose cases ran for as many iterations as any of ``--at``.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from reports.data.samples import present
from suite.errors import UsageError
from suite.files.wording import counted
from suite.matrix.catalog import load_catalog
from suite.options.command_line import Parser, results_path
from suite.records.checks import REFERENCE_ASSETS, only_learned_less, reward_at
from suite.records.rewards import mean_rewards
from suite.records.store import load_results
from suite.schema.record import Case, CaseResult

MIN_SEEDS: Final = 5  # fewer do not tell how far seeds differ
MIN_MARGIN: Final = 0.1  # of the best seed's reward


class Size(NamedTuple):
    """What a reference is of."""

    task: str
    rl_library: str
    stack: str
    world_size: int | None  # None where all ranks learn together
    frames_per_iteration: int
    optimiser_steps: int
    iterations: int

    @classmethod
    def of(cls, case: Case, iterations: int) -> "Size":
        ranks = load_catalog().ranks_of_learning(case)
        frames, steps = case.frames_per_iteration, case.optimiser_steps
        return cls(case.task, case.rl_library, case.stack, ranks, frames, steps, iterations)


def least_rewards(results: Iterable[CaseResult], at: Sequence[int]) -> dict[Size, float]:
    """After so many iterations, for every case of the closed division, on the usual assets, that has as many.

    A seed counts once, by the worst of its runs: on another machine it rounds otherwise, and then learns otherwise.
    One that lies below the reference there was counts like all others, or none could ever fall.

    Raises:
        UsageError: a case has too few seeds, or a run in which no episode had ended.
    """
    rewards: dict[Size, dict[int, list[float | None]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        case = result.case
        if case.division == "open" or not case.learns or case.assets != REFERENCE_ASSETS:
            continue
        for record in result.rounds:
            means = mean_rewards(record) if record.counts or only_learned_less(record) else []
            for iterations in (number for number in at if number <= len(means)):
                seed = case.seed_of(rank=0, round_index=record.round)
                rewards[Size.of(case, iterations)][seed].append(reward_at(means, iterations))
    if not rewards:
        raise UsageError(
            f"no run has {counted(min(at), 'iteration')} with rewards. Name folders of longer runs, or another --at."
        )
    worst = {  # None, which no episode's end had before, is worse than any
        size: {seed: None if None in runs else min(present(runs)) for seed, runs in of_seeds.items()}
        for size, of_seeds in rewards.items()
    }
    return {size: _least(size, of_seeds) for size, of_seeds in sorted(worst.items())}


def _least(size: Size, of_seeds: Mapping[int, float | None]) -> float:
    """The reward as far below the worst seed as that one lies below the best; at least a tenth of the best lower.

    Once a task is learned the seeds that were tried lie close together, and another one's late dip goes further. Where
    seeds spread normally a further sound run lies below in 1.5 % of cases with five seeds, 0.8 % with six and 0.3 %
    with eight (200,000 draws): a round that is, once, beside others that are not, is a reason for more seeds.
    """
    known = [reward for reward in of_seeds.values() if reward is not None]
    if len(known) < max(MIN_SEEDS, len(of_seeds)):
        seeds_known = f"{len(known)} of {counted(len(of_seeds), 'seed')} with a reward at iteration {size.iterations}"
        raise UsageError(
            f"{size.task} with {size.rl_library} on {size.stack}, {size.frames_per_iteration} frames an iteration:"
            f" {seeds_known}. A reference needs all of them, and {MIN_SEEDS} at least. Run bench --matrix learning with"
            " more values of --seed, or name another --at."
        )
    worst, best = min(known), max(known)
    return worst - max(best - worst, MIN_MARGIN * abs(best))


def catalog_lines(rewards: Mapping[Size, float], *, source: str) -> Iterator[str]:
    """Yield the lines of the agents' tables in the catalog."""
    for (task, rl_library), sizes in groupby(sorted(rewards), key=lambda size: size[:2]):
        yield f"[tasks.{task}.agents.{rl_library}]"
        yield "learning_references = ["
        for size in sizes:
            ranks = "" if size.world_size is None else f" world_size = {size.world_size},"
            yield (
                f'    {{ stack = "{size.stack}",{ranks}'
                f" frames_per_iteration = {size.frames_per_iteration}, optimiser_steps = {size.optimiser_steps},"
                f' iterations = {size.iterations}, reward_at_least = {rewards[size]:.4f}, source = "{source}" }},'
            )
        yield "]"


def main(arguments: Sequence[str]) -> int:
    parser = Parser(
        prog="nox -s learning_references --",
        description="Print what runs with several seeds say every sound run learns, as entries of tasks/catalog.toml.",
    )
    parser.add_argument(
        "results", nargs="+", type=results_path, metavar="RESULTS", help="folders of matrix `learning`, one a seed"
    )
    parser.add_argument(
        "--at", action="append", type=int, required=True, metavar="ITERATIONS", help="entries after so many; repeatable"
    )
    parser.add_argument("--case", default="*", metavar="GLOB", help="only matching ids, where folders hold other sizes")
    parser.add_argument("--source", help="what the entries name as theirs (default: the folders)")
    options = parser.read(arguments)
    folders: list[Path] = options.results
    results = [result for folder in folders for result in load_results(folder)]
    wanted = [result for result in results if fnmatch(result.case.case_id, options.case)]
    rewards = least_rewards(wanted, options.at)
    for line in catalog_lines(rewards, source=options.source or " ".join(map(str, folders))):
        print(line)
    return 0
