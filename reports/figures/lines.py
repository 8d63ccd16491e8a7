"""The curves of a task: configurations that differ in nothing but GPUs, or but environments on a GPU. Pure."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from reports.data.words import gpu_name, physics_name, size_text, task_name
from reports.figures.compare import Row
from reports.figures.published import PLAIN
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.machines import plain_name
from reports.sets.version import Version
from suite.schema.record import RULE_WORDS
from suite.statistics.intervals import Estimate

type Figure = Mapping[str, Any]  # a row of the table of figures
type Label = Callable[[Row, Mapping[tuple[object, ...], Sequence[Row]]], str]


@dataclass(frozen=True)
class Line:
    """Configurations of one campaign, by the number that varies, smallest first."""

    version: Version  # that measured it, which may be an older one
    label: str
    where: str
    rows: tuple[Row, ...]
    newest: str  # start of its last run

    @property
    def base(self) -> Row:
        return self.rows[0]

    @property
    def learned(self) -> Sequence[Row]:
        """The configurations of which runs that are of rewards alone say when they have the reward of the base."""
        base, *others = ((row, self.figure(row, "seeds")) for row in self.rows)
        return [row for row, own in others if own and base[1] and own["over"] == base[1]["of"]]

    @property
    def seeds(self) -> Figure | None:
        """How many seeds the number of GPUs with fewest has, by runs that say how it learns; None if none do."""
        learned = [own for row in self.rows if (own := self.figure(row, "seeds"))]
        own_runs = [own for row in self.rows if (own := self.figure(row, "seed"))]
        return min(learned or own_runs, key=lambda own: int(own["value"]), default=None)

    def figure(self, row: Row, name: str) -> Figure | None:
        """A figure of one of its configurations; None if it has none."""
        return figure(self.version, row, name)


def figure(version: Version, row: Row, name: str) -> Figure | None:
    """A figure of a configuration; None if it has none."""
    return rows_by_id(version).get(f"{row['set']}/{row['configuration']}/{name}")


def estimate(own: Figure) -> Estimate:
    """Its value with its interval."""
    return Estimate(value=own["value"], interval=None if own["low"] is None else (own["low"], own["high"]))


@cache
def tasks(version: Version) -> tuple[str, ...]:
    """The plain names of all tasks that were trained, in order."""
    return tuple(sorted({task_name(row["task"]) for row in runs_of(version).configurations if _is_shown(version, row)}))


def _is_shown(version: Version, row: Row) -> bool:
    is_in_set = any(row["set"] == (result_set.name or "results") for result_set in version.scaling)
    return is_in_set and row["device"] == "cuda" and row["workload"] == "train" and not row["only_learning"]


def rows_of(version: Version, task: str) -> list[Row]:
    """Every configuration of the task as shipped, on one machine; not those whose runs are to start, and are short."""
    every = runs_of(version).configurations
    starts = {(row["set"], row["series"]) for row in every if row["kernel_cache"] == "empty"}
    return [
        row
        for row in every
        if task_name(row["task"]) == task
        and (row["set"], row["series"]) not in starts
        and _is_shown(version, row)
        and not row["is_emulated"]
        and all(row[name] == value for name, value in PLAIN.items())
    ]


def by_reward(line: Line) -> tuple[bool, int, bool]:
    """What says most of rewards: runs that are of these alone, then the most GPUs, then runs that had one."""
    return bool(line.learned), int(line.rows[-1]["gpus"]), line.figure(line.base, "time_to_reward_s") is not None


def over_gpus(version: Version, task: str, *, of_rewards: bool = False) -> list[Line]:
    """The curve over GPUs of each library, physics and size: with most GPUs, or what says most ``of_rewards``."""
    same = ("library", "physics", "scaling", "size", "minibatch_rule")
    return _best(version, task, "gpus", _Alike(("set", "series"), same, _size, of_rewards=of_rewards))


def over_environments(version: Version, task: str, least: int = 2, *, of_rewards: bool = False) -> list[Line]:
    """The curve over environments on one GPU, of each library, physics and GPU model with ``least`` points or more."""
    same = ("library", "physics", "gpus", "gpu_model")
    held = ("minibatch_size", "optimiser_steps")  # a curve holds one of them
    alike = (_Alike(("set", "iterations", name), same, _model, least, of_rewards) for name in held)
    minibatch, steps = (_best(version, task, "environments_per_gpu", own) for own in alike)
    labels = {line.label for line in minibatch}
    steps = [replace(line, label=f"{line.label}, same steps") if line.label in labels else line for line in steps]
    return sorted([*minibatch, *steps], key=lambda line: line.label, reverse=True)


@dataclass(frozen=True)
class _Alike:
    """Columns that the configurations of a line share: within its campaign, and with lines of others that it rivals."""

    within: tuple[str, ...]
    rivals: tuple[str, ...]
    label: Label
    least: int = 2  # configurations
    of_rewards: bool = False  # prefer what says most of rewards

    def key(self, row: Row) -> tuple[object, ...]:
        return tuple(row[name] for name in (*self.within, *self.rivals))


def _best(version: Version, task: str, varied: str, alike: _Alike) -> list[Line]:
    def order(line: Line) -> tuple[object, ...]:
        last = line.figure(line.rows[-1], "frames_per_s")
        has_interval = bool(last and last["low"])
        of_rewards = by_reward(line) if alike.of_rewards else ()
        return *of_rewards, line.rows[-1][varied], len(line.rows), has_interval, line.newest

    best: dict[tuple[object, ...], Line] = {}
    for key, line in (keyed for own in (version, *version.older) for keyed in _lines(own, task, varied, alike)):
        known = best.get(key)
        if known is None or order(line) > order(known):
            best[key] = line
    return sorted(best.values(), key=lambda line: (line.base["scaling"], line.label), reverse=True)


def _lines(version: Version, task: str, varied: str, alike: _Alike) -> Iterator[tuple[tuple[object, ...], Line]]:
    """Yield every curve of a version that has enough points, with what it shares with others of its kind."""
    sets = {result_set.name or "results": result_set for result_set in version.scaling}
    groups: dict[tuple[object, ...], list[Row]] = {}
    for row in reversed(rows_of(version, task)):  # of equal ones the first stays: the base of pairs is that too
        groups.setdefault(alike.key(row), []).append(row)
    for key, rows in groups.items():
        by_number = {row[varied]: row for row in sorted(rows, key=lambda row: -row["nodes"])}
        line = Line(
            version,
            alike.label(rows[0], groups),
            plain_name(sets[rows[0]["set"]].campaign.largest_place),
            tuple(by_number[number] for number in sorted(by_number)),
            max(row["started_utc"] or "" for row in rows),
        )
        if len(line.rows) >= alike.least:
            yield key[len(alike.within) :], line


def _size(row: Row, groups: Mapping[tuple[object, ...], Sequence[Row]]) -> str:
    rules = {
        own["minibatch_rule"]
        for rows in groups.values()
        for own in rows
        if (own["library"], own["scaling"], own["size"]) == (row["library"], row["scaling"], row["size"])
    }
    rule = f", {RULE_WORDS[row['minibatch_rule']]}" if len(rules) > 1 else ""
    return f"{row['library']}, {size_text(row)}{rule}{_physics(row)}"


def _model(row: Row, _: object) -> str:
    return f"{row['library']}, {'one' if row['gpus'] == 1 else row['gpus']} {gpu_name(row)}{_physics(row)}"


def _physics(row: Row) -> str:
    return "" if row["physics"] == "kitless" else f", {physics_name(row['physics'])}"
