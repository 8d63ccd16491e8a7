"""The only comparison: B over A, from runs of one campaign whose work is equal except for what is named. Pure.

A pair has a ``Change``: the column that differs, and the columns that may differ because of it. All other columns of
the work are equal. The ratio is that of ``suite.statistics.series_model``, of frames per second: above 1, B is faster.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import polars as pl

from reports.data.columns import WORK
from reports.data.rewards import Levels
from suite.statistics.intervals import Estimate
from suite.statistics.series_model import RunTime, SeriesModel

type Row = Mapping[str, Any]


@dataclass(frozen=True)
class Change:
    """What differs between the two configurations of a pair."""

    column: str
    entails: tuple[str, ...]  # columns that may differ too
    is_base: Callable[[Row, Sequence[Row]], bool]  # whether a configuration may be the A of the others
    among: tuple[str, ...] = ()  # values of the column that are compared; empty: all


def _least(column: str) -> Callable[[Row, Sequence[Row]], bool]:
    return lambda row, rows: row[column] == min(other[column] for other in rows)


def _equal_to(column: str, value: object) -> Callable[[Row, Sequence[Row]], bool]:
    return lambda row, _: bool(row[column] == value)


SIZES: Final = ("environments", "frames_per_iteration", "minibatch_size", "optimiser_steps")
SETTINGS: Final = (*SIZES, "environments_per_gpu", "size", "variant", "is_tuned")
CHANGES: Final = (
    Change("gpus", (*SIZES, "environments_per_gpu", "nodes", "mps"), _least("gpus")),
    Change("nodes", (), _least("nodes")),
    Change(
        "environments_per_gpu", (*SIZES, "size", "minibatch_rule", "series", "scaling"), _least("environments_per_gpu")
    ),
    Change("library", (*SIZES, "steps", "minibatch_rule"), _equal_to("library", "rl_games")),
    Change("physics", (), _equal_to("physics", "kitless")),
    Change("is_tuned", (*SETTINGS, "steps", "iterations"), _equal_to("is_tuned", value=False)),
    Change("is_deterministic", ("variant", "is_tuned"), _equal_to("is_deterministic", value=False)),
    Change("trainings_per_gpu", (*SETTINGS, "mps"), _least("trainings_per_gpu")),
    Change("packages", ("variant", "is_tuned"), _least("packages")),
    Change("workload", ("mps", "series", "gpus"), _equal_to("workload", "train"), among=("train", "async_pipeline")),
    Change(
        "workload",
        ("series", "iterations"),
        _equal_to("workload", "collection"),
        among=("collection", "collection_ray"),
    ),
)
# What decides what an iteration learns. Processes that share a GPU learn alike, see the kind ``differs``.
LEARNING: Final = (
    "task", "library", "physics", "workload", "device", "environments", "environments_per_gpu", "steps",
    "minibatch_size", "optimiser_steps", "is_tuned", "is_deterministic", "trainings_per_gpu", "packages",
)  # fmt: skip
# What equal names of configurations of learning do not say of themselves; runs that are equal in it are of one pool.
POOL: Final = ("configuration", "iterations", "task", "steps", "minibatch_size", "optimiser_steps")
_WORK: Final = tuple(column.name for column in WORK if column.name != "seed")


def processes_of(row: Row) -> int:
    """The processes of one training."""
    return int(row["environments"] // row["environments_per_gpu"])


@dataclass(frozen=True)
class Pair:
    """Two configurations of a campaign: ``of`` over ``over``."""

    set_name: str
    of: Row
    over: Row
    change: Change

    @property
    def id(self) -> str:
        """The id of its ratio."""
        return f"{self.set_name}/{self.of['configuration']}/over_{self.change.column}"


class Runs:
    """The completed runs of a version, which took turns or not, and the models of their series."""

    def __init__(self, frame: pl.DataFrame, iterations: pl.DataFrame) -> None:
        self.every, self.iterations = frame, iterations
        self.completed = frame.filter((pl.col("outcome") == "completed") & ~pl.col("is_alone"))
        self._models: dict[tuple[str, str, bool, frozenset[tuple[str, ...]]], SeriesModel] = {}

    @cached_property
    def configurations(self) -> Sequence[Row]:
        """The work of every configuration that a run completed of, with ``set`` and ``configuration``."""
        own = self.completed.filter(~pl.col("is_repeat"))
        return list(own.unique(["set", "configuration"], keep="first", maintain_order=True).iter_rows(named=True))

    @cached_property
    def _rewards(self) -> Mapping[tuple[str, str, int], Sequence[float | None]]:
        """Mean reward of all processes in each iteration, by set, configuration and run."""
        keys = ("set", "configuration", "run")
        own = self.iterations.filter(~pl.col("is_repeat") & ~pl.col("is_alone"))
        means = own.group_by(*keys, "iteration").agg(pl.col("reward_mean").mean())
        curves = means.sort("iteration").group_by(keys, maintain_order=True).agg(pl.col("reward_mean"))
        return {(set_name, configuration, run): rewards for set_name, configuration, run, rewards in curves.iter_rows()}

    @cached_property
    def _learned(self) -> Mapping[tuple[object, ...], Row]:
        """A run of only_learning, by what decides what it learns: of several pools of the one with most seeds."""
        own = self.completed.filter(pl.col("only_learning") & ~pl.col("is_repeat"))
        pools = own.group_by(*LEARNING, *POOL[:2], maintain_order=True).agg(pl.col("seed").n_unique().alias("seeds"))
        best = {}
        for pool in pools.sort("seeds", "iterations", "configuration").iter_rows(named=True):
            best[tuple(pool[name] for name in LEARNING)] = pool
        return best

    def learned(self, row: Row) -> Row | None:
        """The work of runs of only_learning that learn in an iteration what this one learns; None if none ran."""
        return self._learned.get(tuple(row[name] for name in LEARNING))

    def learned_on_more(self, row: Row) -> list[Row]:
        """Configurations of only_learning of more processes, which learn what this one would on as many GPUs."""
        of_processes = {"weak": ("environments",), "strong": ("environments_per_gpu", "optimiser_steps")}
        alike = [name for name in LEARNING if name not in of_processes[row["scaling"]]]
        known = (own for own in self._learned.values() if all(own[name] == row[name] for name in alike))
        return sorted((own for own in known if processes_of(own) > processes_of(row)), key=processes_of)

    def of(self, row: Row) -> pl.DataFrame:
        """The completed runs of a configuration, without repeats; of what ``learned`` gave those of all sets."""
        own = POOL if "seeds" in row else ("set", "configuration")
        return self.completed.filter(~pl.col("is_repeat"), *(pl.col(name) == row[name] for name in own))

    def levels(self, rows: pl.DataFrame) -> Mapping[tuple[str, int], Levels]:
        """The rewards of runs of one configuration or pool over an episode, by set and number of the run."""
        windows = {
            (set_name, run): window for set_name, run, window in rows.select("set", "run", "reward_window").iter_rows()
        }
        return {key: Levels.of(rewards, windows[key]) for key, rewards in self.rewards(rows).items()}

    def rewards(self, rows: pl.DataFrame) -> Mapping[tuple[str, int], Sequence[float | None]]:
        """The reward in each iteration of runs of one configuration or pool, by set and number of the run."""
        keys = rows.select("set", "configuration", "run").iter_rows()
        return {(key[0], key[2]): self._rewards[key] for key in keys if key in self._rewards}

    def pairs(self) -> Iterator[Pair]:
        """Yield every pair of every change, with one configuration as the A of all that differ in this alone.

        Of several the first by id, tuned ones last. Only of those with a speed: neither on a CPU nor on a shared GPU.
        """
        for change in CHANGES:
            groups: dict[tuple[object, ...], list[Row]] = {}
            equal = ("set", *(name for name in _WORK if name != change.column and name not in change.entails))
            own = (row for row in self.configurations if not change.among or row[change.column] in change.among)
            for row in (row for row in own if row["device"] == "cuda" and not row["only_learning"]):
                groups.setdefault(tuple(row[name] for name in equal), []).append(row)
            for rows in groups.values():
                bases = [row for row in rows if change.is_base(row, rows)]
                base = min(bases, key=lambda row: (row["is_tuned"], row["configuration"]), default=None)
                others = (row for row in rows if base and row[change.column] != base[change.column])
                yield from (Pair(base["set"], row, base, change) for row in others if base)

    def ratio(self, of: Row, over: Row, *, iteration: str = "iteration_s") -> Estimate:
        """Frames per second of ``of`` over those of ``over``. ``iteration``: column with the time of an iteration."""
        model = self.model(of["set"], (of, over), iteration=iteration)
        work = of["frames_per_iteration"] / over["frames_per_iteration"]
        return model.ratio(of["configuration"], over["configuration"]).mapped(lambda longer: work / longer)

    def model(
        self, set_name: str, rows: Sequence[Row], *, iteration: str = "iteration_s", needs_probe: bool = False
    ) -> SeriesModel:
        """The model of the series of these configurations. ``needs_probe``: for figures at full core speed."""
        series = frozenset((row["series"], row["library"], row["workload"]) for row in rows)
        key = set_name, iteration, needs_probe, series
        if key not in self._models:
            own = self.completed.filter(pl.col("set") == set_name, pl.col(iteration).is_not_null())
            self._models[key] = SeriesModel(
                [
                    RunTime(
                        configuration=row["configuration"],
                        block=row["block"],
                        log_time=math.log(row[iteration]),
                        log_probe=None if row["mean_probe_us"] is None else math.log(row["mean_probe_us"] / 1e6),
                    )
                    for row in own.iter_rows(named=True)
                    if (row["series"], row["library"], row["workload"]) in series
                ],
                needs_probe=needs_probe,
            )
        return self._models[key]
