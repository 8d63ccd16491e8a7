"""The samples of one rank against each other: parts within wholes, marks and turns in rhythm, the library's clock."""

import math
import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from reports.verification.finding import RUN_AGAIN, Json, Place, counted

REQUIRED_COLUMNS: Final = ("start_s", "iteration_time_s", "collection_time_s", "learning_time_s")
SHORTEST_S: Final = 1e-9  # no clock measures a shorter iteration
# What is timed inside what; parts of one whole do not overlap.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "iteration_time_s": ("collection_time_s", "learning_time_s"),
    "collection_time_s": ("environment_step_time_s", "inference_time_s"),
    "learning_time_s": ("all_reduce_time_s",),
    "environment_step_time_s": ("simulate_time_s", "render_time_s"),
}
MARKED_COLUMNS: Final = (
    *PARTS["collection_time_s"], *PARTS["learning_time_s"], *PARTS["environment_step_time_s"],
    "all_reduce_calls", "all_reduce_bytes",
)  # fmt: skip
MARKED_EVERY: Final = 4
FIRST_MARKED: Final = 2
FIRST_ITERATIONS: Final = 2  # before the first turn
LEAST_OF_TURN: Final = 5  # iterations
# Iterations follow each other, and parts lie within their whole; timers of a GPU and of its host differ by a little.
SLACK: Final = 0.01
SLACK_S: Final = 0.002
# Between its iterations a training run does book-keeping: at most 8.6 % of its time until 2026-11, or ``BETWEEN_S`` an
# iteration of a tiny task on slow cores. After the first iteration a library sets up what it keeps, which takes longer.
BETWEEN: Final = 0.1
BETWEEN_S: Final = 0.03
# A library's sections begin and end at other lines than ours: at most 3.4 % until 2026-11. Where trainings share a GPU,
# another one may have it between the two lines, so each of them has ``SLACK_S``.
LIBRARY_SLACK: Final = 0.05
LIBRARY_TOLERANCE_S: Final = 1e-4  # between the library's own figures: rl_games adds two times of its own
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

type Array = npt.NDArray[np.float64]
type Columns = Mapping[str, Array]  # a value for each iteration, NaN where nothing was measured


def columns_of(rank: Json) -> Columns:
    return {name: np.array(column, float) for name, column in rank["samples"].items()}


def pieces_of(columns: Columns) -> list[tuple[int, int]]:
    """Return the first and the last iteration of each piece of a run, between which no other run had a turn."""
    turns = columns.get("turn", np.zeros(len(columns["start_s"])))
    begins = [int(index) + 1 for index in np.flatnonzero(np.diff(np.where(np.isnan(turns), 0, turns)))]
    return [(first, after - 1) for first, after in pairwise([0, *begins, len(turns)])]


def check_rank(place: Place, rank: Json, record: Json) -> bool:
    """Check one rank of a completed run; return whether its samples are complete, without which nothing else is."""
    case, columns = record["case"], columns_of(rank)
    learns = case["workload"] == "train"
    wrong = {name: len(column) for name, column in sorted(columns.items()) if len(column) != case["iterations"]}
    if wrong:
        place.fault("the number of samples", str(wrong), f"{case['iterations']} of each", RUN_AGAIN)
        return False
    required = REQUIRED_COLUMNS if learns else REQUIRED_COLUMNS[:2]
    holes = [name for name in required if np.isnan(columns.get(name, np.array([math.nan]))).any()]
    if holes or columns["iteration_time_s"].min() < SHORTEST_S:
        got = "incomplete" if holes else "not above 0"
        place.fault(", ".join(holes) or "iteration_time_s", got, "measured", RUN_AGAIN)
        return False
    if learns and not _SHA256.fullmatch(rank["parameters_sha256"] or ""):
        place.fault("parameters_sha256", str(rank["parameters_sha256"]), "a SHA-256")
    with np.errstate(divide="ignore", invalid="ignore"):
        _check_order(place, columns, learns=learns)
        _check_turns(place, columns, record["turns"])
        _check_parts(place, columns)
        _check_marks(place, columns)
        _check_library(place, columns, case)
        _check_learned(place, columns, record["workload"] or {})
    return True


def _all_between(place: Place, what: str, values: Array, low: Any, high: Any, unit: str = " s") -> None:
    """Note the first iteration whose value lies beyond its bounds; NaN is within them."""
    beyond = np.flatnonzero((values < low) | (values > high))
    if len(beyond):
        first, more = beyond[0], len(beyond) - 1
        least, most = (np.broadcast_to(bound, values.shape)[first] for bound in (low, high))
        got = f"{values[first]:g}{unit}{f', and {counted(more, "more iteration")} likewise' if more else ''}"
        place.fault(f"{what} of iteration {first}", got, f"from {least:g} to {most:g}{unit}")


def _check_order(place: Place, columns: Columns, *, learns: bool) -> None:
    """Check that iterations follow each other with little time between them: edited times overlap or leave gaps."""
    starts_s, times_s = columns["start_s"], columns["iteration_time_s"]
    most_s = np.diff(starts_s) + SLACK_S + SLACK * times_s[:-1]
    _all_between(place, "iteration_time_s, until the next began,", times_s[:-1], 0, most_s)
    pieces = [(max(1, first), last) for first, last in pieces_of(columns) if last > 0]
    run_s = sum(starts_s[last] + times_s[last] - starts_s[first] for first, last in pieces)
    number = len(times_s) - 1
    if learns and number > 1:
        most, share = max(BETWEEN, BETWEEN_S * number / run_s), float(1 - times_s[1:].sum() / run_s)
        place.between("the share of its time between iterations", share, -SLACK, most)


def _check_turns(place: Place, columns: Columns, turns: Json | None) -> None:
    """Check that turns are numbered and as long as the keeper gives them: some 2.5 s at the pace of the turn before."""
    column = columns.get("turn")
    if turns is None or column is None:
        place.same("a column of turns", column is not None, turns is not None)
        return
    begun = column[FIRST_ITERATIONS:]
    numbers, firsts, counts = np.unique(begun, return_index=True, return_counts=True)
    is_numbered = np.isnan(column[:FIRST_ITERATIONS]).all() and [*numbers] == [*range(1, turns["turns"] + 1)]
    if not is_numbered or (np.diff(begun) < 0).any():
        expected = f"1 to {turns['turns']}, from iteration {FIRST_ITERATIONS} on"
        place.fault("the numbers of its turns", f"{[*map(float, numbers)]}", expected)
        return
    starts_s, ends_s = columns["start_s"], columns["start_s"] + columns["iteration_time_s"]
    left, wanted = len(begun), LEAST_OF_TURN
    for number, first, count in zip(map(int, numbers), firsts + FIRST_ITERATIONS, map(int, counts), strict=True):
        most = wanted if left - wanted >= LEAST_OF_TURN else left
        place.between(f"iterations of turn {number}", count, min(left, LEAST_OF_TURN), most)
        left -= count
        pace_s = max(SHORTEST_S, (ends_s[first + count - 1] - starts_s[first]) / count)
        wanted = max(LEAST_OF_TURN, round(turns["turn_s"] / pace_s))


def _check_parts(place: Place, columns: Columns) -> None:
    """Check that parts are no longer than their whole, and that collection and learning are all of an iteration."""
    for whole, names in PARTS.items():
        parts = {name: columns[name] for name in names if name in columns}
        if whole not in columns or not parts:
            continue
        most_s = columns[whole] * (1 + SLACK) + SLACK_S
        is_all = whole == "iteration_time_s" and len(parts) == len(names)
        least_s = columns[whole] * (1 - SLACK) - SLACK_S if is_all else 0.0
        _all_between(place, " and ".join(parts), np.nansum([*parts.values()], axis=0), least_s, most_s)


def _check_marks(place: Place, columns: Columns) -> None:
    """Check that marks are in their rhythm, with sections timed in marked iterations alone; no time is below 0."""
    if "marked" in columns:  # runs of the first days have no such column: all were marked
        marked = np.nan_to_num(columns["marked"], nan=-1)
        marks = (np.arange(len(marked)) % MARKED_EVERY == FIRST_MARKED).astype(float)
        _all_between(place, "marked", marked, marks, marks, unit="")
        taken = [name for name in MARKED_COLUMNS if name in columns and not np.isnan(columns[name][marked == 0]).all()]
        if taken:
            place.fault(", ".join(taken), "measured in iterations that are not marked", "measured in marked ones alone")
    for name, column in columns.items():
        if name.startswith(("core_", "all_reduce_")) or name.endswith("_time_s"):
            _all_between(place, name, column, 0, math.inf, unit="")


def _check_library(place: Place, columns: Columns, case: Json) -> None:
    """Check the library's own frames per second against its own times, and these against ours."""
    together = case["trainings_per_gpu"]
    frames = case["num_envs_global"] // together * case["num_steps_per_env"]  # a library knows its own training only
    known = {name: column.copy() for name, column in columns.items()}
    begins = [first for first, _ in pieces_of(columns)[1:]]
    for column in known.values():
        column[begins] = math.nan  # the library counts the wait for the turn too
    if known.keys() >= {"rl_games.total_fps", "rl_games.step_inference_fps", "rl_games.update_time_s"}:
        library, fps = "rl_games", known["rl_games.step_inference_fps"]
        theirs = {
            "rl_games.step_inference_fps": frames / fps,
            "rl_games.update_time_s": known["rl_games.update_time_s"],
        }
    elif libraries := [name for name in ("rsl_rl", "torchrl") if f"{name}.total_fps" in known]:
        (library,) = libraries
        theirs = {name: known[name] for name in (f"{library}.collection_time_s", f"{library}.learning_time_s")}
    else:
        return
    total_s = sum(theirs.values(), np.zeros(1))
    slack_s = LIBRARY_TOLERANCE_S + LIBRARY_TOLERANCE_S * total_s + total_s**2 / frames  # fps may be a whole number
    whole_s = frames / known[f"{library}.total_fps"]
    _all_between(place, f"the iteration by {library}.total_fps", whole_s, total_s - slack_s, total_s + slack_s)
    for (name, time_s), ours in zip(theirs.items(), PARTS["iteration_time_s"], strict=True):
        if ours in known:
            slack_s = LIBRARY_SLACK * known[ours] + SLACK_S * together
            _all_between(place, f"the time by {name}", time_s, known[ours] - slack_s, known[ours] + slack_s)


def _check_learned(place: Place, columns: Columns, workload: Json) -> None:
    """Check that an episode ends at the task's limit, and that a share is one."""
    if "success_rate" in columns:
        _all_between(place, "success_rate", columns["success_rate"], 0, 1, unit="")
    length_s, dt_s, decimation = (workload.get(name) for name in ("episode_length_s", "env.sim.dt", "decimation"))
    if "episode_length_mean" in columns and length_s and dt_s and decimation:
        most = math.ceil(length_s / (dt_s * decimation)) + 1
        _all_between(place, "episode_length_mean", columns["episode_length_mean"], 0, most, unit="")
