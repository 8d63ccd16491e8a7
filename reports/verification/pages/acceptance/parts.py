"""The parts of a machine, each with its value in one round; None where the round does not say it. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from reports.verification import formulas
from reports.verification.figures.starts import total_s
from reports.verification.finding import Json
from reports.verification.pages.acceptance.machines import Round
from reports.verification.samples.round_facts import world_size

type Value = Callable[[Round], float | None]


def _core_probe_us(one: Round) -> float | None:
    return _of_slowest([[1e6 * row[0] for row in rows] for rows in _rows(one, "core_probe_time_s") if rows])


def _throttled_percent(one: Round) -> float | None:
    seen = one.record.get("telemetry")
    shares = [gpu["throttled_share"] for gpu in seen["gpus"]] if seen else []
    return max((100 * share for share in shares if share is not None), default=None)


def _all_reduce_s(one: Round) -> float | None:
    if world_size(one.record["case"]) == 1:
        return None
    if _does(one, "all_reduce"):
        return one.time_s
    ranks = _rows(one, "all_reduce_time_s")
    return min(formulas.median([row[0] for row in rows]) for rows in ranks) if all(ranks) else None


def _environment_step_s(one: Round) -> float | None:
    if _does(one, "environment_step"):
        return one.time_s
    return _of_slowest([[row[0] for row in rows] for rows in _rows(one, "environment_step_time_s")])


def _learning_s(one: Round) -> float | None:
    ranks = _rows(one, "learning_time_s", "all_reduce_time_s", needed=1)
    times_s = [[row[0] - (row[1] or 0.0) for row in rows] for rows in ranks]
    return _of_slowest(times_s) if _does(one, "train") else None


def _rest_s(one: Round) -> float | None:
    ranks = _rows(one, "iteration_time_s", "environment_step_time_s", "learning_time_s")
    return _of_slowest([[row[0] - row[1] - row[2] for row in rows] for rows in ranks]) if _does(one, "train") else None


def _imports_s(one: Round) -> float | None:
    phases = [rank["phases_s"] for rank in one.record["ranks"]]
    known = [[times_s[name] for name in ("imports_torch", "imports") if name in times_s] for times_s in phases]
    return max((sum(times_s) for times_s in known if times_s), default=None)


def _start_after_imports_s(one: Round) -> float | None:
    imports_s = _imports_s(one)
    return None if imports_s is None else total_s(one.record) - imports_s


def _power_w(one: Round) -> float | None:
    power = (one.record.get("telemetry") or {}).get("power_w")
    return power["mean"] / world_size(one.record["case"]) if power else None


PARTS: Final[Mapping[str, Value]] = {
    "core probe": _core_probe_us,
    "throttled": _throttled_percent,
    "all-reduce": _all_reduce_s,
    "environment step": _environment_step_s,
    "learning": _learning_s,
    "rest of iteration": _rest_s,
    "imports": _imports_s,
    "start after imports": _start_after_imports_s,
    "power of a GPU": _power_w,
}
OF_AN_ITERATION: Final = ("all-reduce", "environment step", "learning", "rest of iteration")
OF_A_START: Final = ("imports", "start after imports")


def _does(one: Round, workload: str) -> bool:
    return bool(one.record["case"].get("workload", "train") == workload)


def _rows(one: Round, *columns: str, needed: int | None = None) -> list[list[list[Any]]]:
    """Return of each rank the values of columns in marked iterations that have the first ``needed`` of them."""
    marked = formulas.marked_iterations(one.record)
    found = []
    for rank in one.record["ranks"]:
        stored = [rank["samples"].get(column) or [None] * (max(marked, default=-1) + 1) for column in columns]
        rows = [[values[iteration] for values in stored] for iteration in marked]
        found.append([row for row in rows if None not in row[: needed or len(columns)]])
    return found


def _of_slowest(ranks: Sequence[Sequence[float]]) -> float | None:
    """Return the median of the rank where it is largest; None if a rank has nothing."""
    return max(map(formulas.median, ranks)) if ranks and all(ranks) else None


def values_of(part: str, rounds: Sequence[Round], like: Json) -> list[float]:
    """Return the values of rounds. Rounds in turns start together, so their starts compare with none that ran alone."""
    kept = [
        one
        for one in rounds
        if part not in OF_A_START or (one.record.get("turns") is None) == (like.get("turns") is None)
    ]
    values = [PARTS[part](one) for one in kept]
    return [value for value in values if value is not None]
