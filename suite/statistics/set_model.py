"""The models of all series of a set: ratios, speed-ups and slopes between its cases. Pure."""

from collections.abc import Iterable
from typing import Self

from suite.schema.record import Case, CaseResult, RunRecord
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import SeriesModel, run_time
from suite.statistics.twins import SUFFIX


class SetModel:
    """The models of a set's series. Each is fitted when it is asked for.

    ``records``: all runs of the set, those of repeats of the baseline included.
    """

    def __init__(self, records: Iterable[RunRecord]) -> None:
        self._records = [record for record in records if record.counts]
        self._models: dict[frozenset[tuple[str, ...]], SeriesModel | None] = {}  # not `cache`: that has no pickle

    @classmethod
    def of(cls, results: Iterable[CaseResult]) -> Self:
        """The models of these results."""
        return cls(record for result in results for record in result.rounds)

    def ratio(self, over: Case, under: Case) -> Estimate | None:
        """The time of an iteration of ``over``, divided by that of ``under``; None if one of them has no run.

        Configurations of two series share the model of both.
        """
        model = self._fitted(frozenset((_series(over), _series(under))))
        names = [case.case_id.removesuffix(SUFFIX) for case in (over, under)]
        return model.ratio(*names) if model and set(names) <= set(model.configurations) else None

    def speedup(self, of: Case, base: Case) -> Estimate | None:
        """Frames per second of ``of`` over those of ``base``; None if one of them has no run."""
        work = of.frames_per_iteration / base.frames_per_iteration
        longer = self.ratio(of, base)
        return longer and longer.mapped(lambda ratio: work / ratio)

    def core_slope(self, case: Case) -> Estimate | None:
        """How far the time of an iteration of the case's series goes with that of the core probe; None if not known."""
        runs = [run_time(record) for record in self._records if _series(record.case) == _series(case)]
        return SeriesModel(runs, needs_probe=True).core_slope if runs else None

    def _fitted(self, series: frozenset[tuple[str, ...]]) -> SeriesModel | None:
        if series not in self._models:
            own = [record for record in self._records if _series(record.case) in series]
            runs = [run_time(record) for record in own]
            self._models[series] = SeriesModel(runs) if runs else None
        return self._models[series]


def _series(case: Case) -> tuple[str, ...]:
    return case.series, case.rl_library, case.workload
