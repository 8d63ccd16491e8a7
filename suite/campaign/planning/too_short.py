"""Which planned cases have too few iterations, by the rounds that are stored with labscale."""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from suite.records.store import load_results
from suite.schema.record import Case, CaseResult
from suite.statistics.reduce import steady_part

MIN_ROUNDS: Final = 4  # fewer stored rounds of the same work show nothing
SHARE: Final = 1 / 4  # of these rounds; where so many warm up for half of the iterations, one of four does not settle


@cache  # the stored results are those of this checkout, and take a second to read
def stored_results(folder: Path) -> tuple[CaseResult, ...]:
    """All results below ``folder``, which has a folder for each version; () without any.

    Raises StoreError as ``load_results`` does.
    """
    sets = sorted(path.parent for path in folder.glob("*/*/cases"))
    return tuple(result for one in sets for result in load_results(one))


def too_short(cases: Sequence[Case], stored: Iterable[CaseResult]) -> list[str]:
    """A sentence for each work that has too few iterations, in the order of ``cases``.

    A stored round of the same work with as many iterations or more shows it if its warm-up lasts at least as long as
    half of the planned iterations, which is as far as its end is searched (``suite.statistics.steady``).
    """
    starts: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for result in stored:
        for window in map(steady_part, result.completed):
            starts.setdefault(_work(result.case), []).append((window.stop, window.start))
    planned = dict.fromkeys((_work(case), case.iterations) for case in cases)
    said = (_in_words(work, iterations, starts.get(work, [])) for work, iterations in planned)
    return [sentence for sentence in said if sentence]


def _work(case: Case) -> tuple[str, ...]:
    return case.task, case.rl_library, f"{case.num_envs:,} environments a rank", case.workload, case.device


def _in_words(work: tuple[str, ...], iterations: int, stored: Sequence[tuple[int, int]]) -> str | None:
    starts = [start for count, start in stored if count >= iterations]
    late = sum(start >= iterations // 2 for start in starts)
    if len(starts) < MIN_ROUNDS or late < SHARE * len(starts):
        return None
    task, library, size, *_ = work
    return (
        f"{task}, {library}, {size}: {iterations} iterations are too few. In {late} of {len(starts)} stored rounds the"
        f" warm-up takes {iterations // 2} iterations or more."
    )
