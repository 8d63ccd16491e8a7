"""Stored results as tables: ``runs`` has a row for each run, ``iterations`` for each iteration of each process."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import polars as pl

from reports.data.columns import RUN_COLUMNS, Run, starts_of
from reports.sets.version import ResultSet, Version
from suite.schema.record import SAMPLE_COLUMNS, CaseResult

DTYPES: Final = {str: pl.String, int: pl.Int64, float: pl.Float64, bool: pl.Boolean}
KEYS: Final = ("set", "configuration", "is_repeat", "is_alone", "run")
_SCHEMA: Final = {
    "set": pl.String, "configuration": pl.String, "is_repeat": pl.Boolean, "is_alone": pl.Boolean, "run": pl.Int64,
    "process": pl.Int64, "iteration": pl.UInt32,
}  # fmt: skip


def runs(version: Version) -> pl.DataFrame:
    """Return a row for each stored run, those that failed too. Columns: ``reports.data.columns.RUN_COLUMNS``."""
    every = list(_runs(version))
    return pl.DataFrame(
        [
            pl.Series(column.name, [column.value(run) for run in every], DTYPES[column.kind], strict=False)
            for column in RUN_COLUMNS
        ]
    )


def iterations(version: Version) -> pl.DataFrame:
    """Return a row for each iteration of each process of a run, with ``suite.schema.record.SAMPLE_COLUMNS``."""
    none = pl.DataFrame(schema={**_SCHEMA, **dict.fromkeys(SAMPLE_COLUMNS, pl.Float64)})
    return pl.concat([none, *(part for run in _runs(version) for part in _samples(run))], how="diagonal_relaxed")


def checks(version: Version) -> pl.DataFrame:
    """Return a row for each check of a process: whether it did the work that its configuration states."""
    rows = [
        {**_keys(run), "process": rank.rank, "check": check.name, "verdict": check.verdict, "said": check.found}
        for run in _runs(version)
        for rank in run.record.ranks
        for check in rank.validity
    ]
    return pl.DataFrame(rows)


def _runs(version: Version) -> Iterator[Run]:
    for result_set in version.sets:
        yield from _of_results(result_set, result_set.campaign.with_twins, is_alone=False)
        yield from _of_results(result_set, result_set.copies, is_alone=True)


def _of_results(result_set: ResultSet, results: Sequence[CaseResult], *, is_alone: bool) -> Iterator[Run]:
    for result in results:
        starts = starts_of(result)
        pairs = {pair.round: pair for pair in result_set.pairs if pair.case_id == result.case.case_id}
        for record in result.rounds:
            yield Run(
                set_name=result_set.name or "results",
                contributor=result_set.contributor.name if result_set.contributor else None,
                is_alone=is_alone,
                record=record,
                start=starts.get(record.round),
                fastest_probe_s=result_set.campaign.fastest_probe_s,
                pair=pairs.get(record.round),
            )


def _keys(run: Run) -> Mapping[str, object]:
    return {column.name: column.value(run) for column in RUN_COLUMNS if column.name in KEYS}


def _samples(run: Run) -> Iterator[pl.DataFrame]:
    for rank in run.record.ranks:
        samples = {name: rank.samples[name] for name in SAMPLE_COLUMNS if rank.samples.get(name)}
        if samples:
            frame = pl.DataFrame({name: pl.Series(name, values, pl.Float64) for name, values in samples.items()})
            own = [pl.lit(value).alias(name) for name, value in (*_keys(run).items(), ("process", rank.rank))]
            yield frame.with_row_index("iteration").select(*own, pl.all())
