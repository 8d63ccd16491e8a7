"""Runs that say how fast a machine is, and the published machines that another one is compared with.

A machine is a host of one label on one day, in the sets of the same people. Archived sets are left out, since evidence
of their runs is missing, and so is every run that is not known to have run alone: its machine may have looked slow.
Series with cold starts are left out too: their few iterations do not say how fast a machine is. Nor do runs that
shared their GPU, whose times mean nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

import polars as pl

from reports.data.columns import RUN_COLUMNS
from reports.data.frames import DTYPES
from reports.figures.tables import runs_of
from reports.sets.version import ResultSet, Version, versions_below
from suite.errors import UsageError
from suite.files.wording import day_in_words

KEYS: Final = ("version", "set", "configuration", "run")
IDENTITY: Final = ("machine", "configuration", "run", "started_utc", "wall_s")  # of a run, in whatever set it is
_FREE: Final = frozenset({"python"})  # its patch level comes with the operating system
IS_COMPLETED: Final = pl.col("outcome") == "completed"


@dataclass(frozen=True)
class Measured:
    """Runs on GPUs that were measured for speed, with the ``host`` of each, and the iterations of all runs."""

    runs: pl.DataFrame
    iterations: tuple[pl.DataFrame, ...]  # of each version

    @property
    def models(self) -> list[str]:
        return sorted(set(self.runs["gpu_model"].drop_nulls()))

    def of_model(self, model: str) -> "Measured":
        return replace(self, runs=self.runs.filter(pl.col("gpu_model") == model))

    def others(self, own: "Measured") -> "Measured":
        """Leave out the machine itself: one that shares a run with ``own``, which may be published already."""
        known = set(own.runs.select(IDENTITY).rows())
        hosts = {host for *run, host in self.runs.select(*IDENTITY, "host").rows() if tuple(run) in known}
        return replace(self, runs=self.runs.filter(~pl.col("host").is_in(hosts)))

    def comparable(self, row: Mapping[str, Any]) -> pl.DataFrame:
        """The runs of the same work and versions of packages as ``row``.

        Several trainings on a GPU are compared if all shared it through CUDA MPS, or none did.
        """
        same = self.runs.filter(pl.col("work") == row["work"])
        if row["trainings_per_gpu"] > 1:
            same = same.filter(pl.col("mps").eq_missing(pl.lit(row["mps"], pl.Boolean)))
        is_like = [not other_versions(row["versions"], versions) for versions in same["versions"]]
        return same.filter(pl.Series(is_like, dtype=pl.Boolean))


def other_versions(here: str, there: str) -> tuple[str, ...]:
    """Packages that both runs name and that differ: ``torch 2.11.0 there, 2.12.0 here``."""
    ours, theirs = (dict(item.split("==", 1) for item in versions.split()) for versions in (here, there))
    return tuple(
        f"{name} {theirs[name]} there, {ours[name]} here"
        for name in sorted((ours.keys() & theirs.keys()) - _FREE)
        if ours[name] != theirs[name]
    )


def measured(version: Version, sets: Iterable[ResultSet], *, starts: bool = False) -> Measured:
    """Return the runs on GPUs in these sets, those that failed too; with ``starts`` those of series of starts too."""
    names = [result_set.name or "results" for result_set in sets]
    every = runs_of(version).every.filter(pl.col("set").is_in(names), ~pl.col("is_alone"), ~pl.col("is_repeat"))
    runs = every.filter(pl.col("device") == "cuda", pl.col("outcome") != "skipped", ~pl.col("only_learning"))
    if not starts:
        cold = every.filter(pl.col("kernel_cache") == "empty").select("set", "series").unique()
        runs = runs.join(cold, on=["set", "series"], how="anti", maintain_order="left")
    hosts = pl.Series("host", [_host(row) for row in runs.iter_rows(named=True)], pl.String)
    folder = str(version.folder)  # two versions may have one name
    return Measured(runs.with_columns(version=pl.lit(folder), host=hosts), (_iterations(version),))


@cache
def _iterations(version: Version) -> pl.DataFrame:
    every = runs_of(version).iterations.filter(~pl.col("is_alone"), ~pl.col("is_repeat"))
    columns = ("process", "iteration", "iteration_time_s", "marked", "core_probe_time_s")
    return every.with_columns(version=pl.lit(str(version.folder))).select(*KEYS, *columns)


def published(versions: Iterable[Version]) -> Measured:
    """Return the completed runs of the machines of these versions, in order of their first runs there."""
    parts = [
        measured(
            version,
            [
                result_set
                for result_set in version.sets
                if result_set.role != "archive" and result_set.shared_machine == "no"
            ],
        )
        for version in versions
    ]
    none = pl.DataFrame(schema={column.name: DTYPES[column.kind] for column in RUN_COLUMNS})
    none = none.with_columns(version=pl.lit("", pl.String), host=pl.lit("", pl.String))
    runs = (part.runs.filter(IS_COMPLETED, pl.col("gpu_model").is_not_null()) for part in parts)
    return Measured(pl.concat([none, *runs]), tuple(own for part in parts for own in part.iterations))


def read_published(folder: Path) -> Measured:
    """Read every version below ``folder``, a folder of versions such as ``reports/results``.

    Raises:
        UsageError: it has no version with results on GPUs.
        StoreError, ReportError: a version cannot be read.
    """
    machines = published(versions_below(folder))
    if machines.runs.is_empty():
        raise UsageError(
            f"--published {folder} has no version with runs on GPUs. Name a folder of versions; the one of labscale is"
            " reports/results."
        )
    return machines


def _host(row: Mapping[str, Any]) -> str:
    start = row["started_utc"]
    day = day_in_words(datetime.fromisoformat(start).astimezone(UTC)) if start else "day unknown"
    whose = f" ({row['contributor']})" if row["contributor"] else ""
    return f"{row['machine'] or row['set']}, {day}{whose}"
