"""Deterministic cases beside the same case as shipped: the cost, and whether runs of one seed are equal. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from reports.analysis.rows import case_times
from reports.analysis.same_work import Work, work_of
from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.series_model import SetModel
from suite.statistics.twins import is_twin

type _Rewards = tuple[tuple[float | None, ...], ...]  # of every rank, of every iteration


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """Completed runs of one case with one seed on one kind of GPU."""

    runs: int
    outcomes: int  # how many different final parameters they have, bit for bit
    differ_from: int | None  # first iteration, from 0, whose stored rewards differ; None: no reward differs

    @property
    def are_equal(self) -> bool:
        return self.outcomes == 1 and self.differ_from is None


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A deterministic case and the same case without."""

    deterministic: CaseResult
    times_s: tuple[Estimate | None, Estimate | None]  # seconds per iteration: as shipped, deterministic
    longer: Estimate | None  # time of a deterministic iteration over that as shipped; None: one did not complete
    repeats: tuple[Repeats | None, Repeats | None]  # as shipped, deterministic; None: no two runs to compare


def pairs(results: Sequence[CaseResult]) -> tuple[Pair, ...]:
    """Return every deterministic case that has the same case without beside it, in the order of ``results``."""
    shipped = {_key(one.case): one for one in results if not one.case.deterministic and not is_twin(one.case)}
    model = SetModel.of(results)
    return tuple(
        _pair(one, shipped[_key(one.case)], model)
        for one in results
        if one.case.deterministic and _key(one.case) in shipped
    )


def repeats(result: CaseResult) -> Repeats | None:
    """Compare the runs of the seed and the GPU that most runs have; None for fewer than two.

    Only such runs can be expected to be equal. Parameters are compared by their hash and rewards as they are stored,
    with nine significant digits.
    """
    groups: dict[tuple[int, tuple[object, ...]], list[RunRecord]] = {}
    for record in result.completed:
        if all(rank.parameters_sha256 for rank in record.ranks):
            gpus = tuple(rank.settings.get("gpu_name") for rank in record.ranks)
            seed = result.case.seed_of(rank=0, round_index=record.round)
            groups.setdefault((seed, gpus), []).append(record)
    records = max(groups.values(), key=len, default=[])
    if len(records) < 2:  # noqa: PLR2004 - one run has nothing to be compared with
        return None
    return Repeats(
        runs=len(records),
        outcomes=len({tuple(rank.parameters_sha256 for rank in record.ranks) for record in records}),
        differ_from=next(_differences([_rewards(record) for record in records]), None),
    )


def _key(case: Case) -> tuple[str, Work]:
    return case.series, work_of(replace(case, deterministic=False, division="closed"))


def _pair(deterministic: CaseResult, shipped: CaseResult, model: SetModel) -> Pair:
    times_s, shipped_s = (case_times(one).values() for one in (deterministic, shipped))
    return Pair(
        deterministic=deterministic,
        times_s=(mean_of(shipped_s) if shipped_s else None, mean_of(times_s) if times_s else None),
        longer=model.ratio(deterministic.case, shipped.case),
        repeats=(repeats(shipped), repeats(deterministic)),
    )


def _rewards(record: RunRecord) -> _Rewards:
    return tuple(tuple(rank.samples.get("reward_mean", ())) for rank in record.ranks)


def _differences(runs: Sequence[_Rewards]) -> Iterator[int]:
    """Yield every iteration in which not all runs have the same rewards."""
    by_iteration = [list(zip_longest(*ranks)) for ranks in runs]
    for iteration, rewards in enumerate(zip_longest(*by_iteration)):
        if len(set(rewards)) > 1:
            yield iteration
