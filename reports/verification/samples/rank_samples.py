"""The samples of one rank against each other: parts within wholes, marks in rhythm, the library's clock. Pure."""

import math
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Final

from reports.verification.finding import RUN_AGAIN, Finding, Json, differing, outside
from reports.verification.formulas import starts_of_turns
from reports.verification.samples.round_facts import trainings

REQUIRED_COLUMNS: Final = ("start_s", "iteration_time_s", "collection_time_s", "learning_time_s")
# What is timed inside what; parts of one whole do not overlap.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "iteration_time_s": ("collection_time_s", "learning_time_s"),
    "collection_time_s": ("environment_step_time_s", "inference_time_s"),
    "learning_time_s": ("all_reduce_time_s",),
    "environment_step_time_s": ("simulate_time_s", "render_time_s"),
}
MARKED_COLUMNS: Final = (
    *PARTS["collection_time_s"],
    *PARTS["learning_time_s"],
    *PARTS["environment_step_time_s"],
    "all_reduce_calls",
    "all_reduce_bytes",
)
# The conditions of an iteration, each with its least value. Before 30 Nov 2026 only the core probe was recorded.
CONDITIONS: Final[Mapping[str, float]] = {
    "core_cpu_time_s": 0.0,
    "core_wait_time_s": 0.0,
    "core_switches": 0.0,
    "core_steal_time_s": 0.0,
    "core_probe_time_s": 1e-9,
    "memory_probe_time_s": 1e-9,
    "launch_probe_time_s": 1e-9,
}
MARKED_EVERY: Final = 4
FIRST_MARKED: Final = 2
# Iterations follow each other, and parts lie within their whole; timers of a GPU and of its host differ by a little.
SLACK: Final = 0.01
SLACK_S: Final = 0.002
# Between its iterations a training run does book-keeping: at most 8.6 % of its time until 2026-11. Tiny tasks on slow
# cores may take ``BETWEEN_S`` after an iteration, whatever its share. After the first iteration a library sets up once
# what it keeps: rsl_rl writes its first checkpoint. That takes longer, so the share counts from the second one on.
BETWEEN: Final = 0.1
BETWEEN_S: Final = 0.03
# A library's sections begin and end at other lines than ours: at most 3.4 % until 2026-11. Where trainings share a GPU,
# another one may have it between the two lines, so each of them has ``SLACK_S``: with four trainings of Ant on one H200
# (28 Nov 2026) the clocks differed by up to 3.6 ms beyond these 5 %, with two by up to 0.5 ms.
LIBRARY_SLACK: Final = 0.05
# Ours is a step's time on the GPU, theirs the host's, which goes on before the GPU is done: at most 10.3 % below ours
# until 2026-11, where several campaigns shared a GPU. Trainings of a case that take turns on a GPU have no such limit:
# with four of Ant on H200s (28 and 29 Nov 2026) the host's time is up to 33 % below, and through CUDA MPS never.
HOST_SLACK: Final = 0.15
LIBRARY_TOLERANCE_S: Final = 1e-4  # between the library's own figures: rl_games adds two times of its own
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

type Samples = Mapping[str, float | None]  # of one iteration


def check_rank(where: str, at: str, rank: Json, record: Json) -> Iterator[Finding]:
    """Check one rank of a completed round; if samples are missing, that is the only finding."""
    case, samples = record["case"], rank["samples"]
    learns = case["workload"] == "train"
    for name, column in sorted(samples.items()):
        if len(column) != case["iterations"]:
            got, expected = str(len(column)), str(case["iterations"])
            what = f"{at}: the number of {name}"
            yield Finding(where=where, what=what, got=got, expected=expected, next_step=RUN_AGAIN)
    required = REQUIRED_COLUMNS if learns else REQUIRED_COLUMNS[:2]
    holes = [name for name in required if None in samples.get(name, (None,))]
    if holes:
        what = f"{at}: {', '.join(holes)}"
        yield Finding(where=where, what=what, got="incomplete", expected="measured", next_step=RUN_AGAIN)
        return
    if learns and not _SHA256.fullmatch(rank["parameters_sha256"] or ""):
        got = str(rank["parameters_sha256"])
        yield Finding(where=where, what=f"{at}: parameters_sha256", got=got, expected="a SHA-256")
    yield from _check_order(where, at, samples["start_s"], samples["iteration_time_s"])
    if learns and not record["turns"]:  # between its turns a process waits for others
        yield from check_between(where, at, samples["start_s"], samples["iteration_time_s"])
    begins_turn = starts_of_turns(record)
    for iteration in range(min(map(len, samples.values()))):
        row = {name: column[iteration] for name, column in samples.items()}
        here = f"of iteration {iteration}"
        yield from _check_parts(where, at, here, row)
        yield from _check_marks(where, at, iteration, row)
        if iteration not in begins_turn:  # the library counts the wait for the turn too
            yield from _check_library(where, at, here, row, case, mps=rank["settings"].get("mps") is True)
        yield from _check_learned(where, at, here, row, record)


def check_between(where: str, at: str, starts_s: list[float], times_s: list[float]) -> Iterator[Finding]:
    """Check that little time passes between iterations: times that were edited leave more, or less than none."""
    starts_s, times_s = starts_s[1:], times_s[1:]
    if len(times_s) > 1:
        run_s = starts_s[-1] + times_s[-1] - starts_s[0]
        between = 1 - math.fsum(times_s) / run_s
        most = max(BETWEEN, BETWEEN_S * len(times_s) / run_s)
        yield from outside(where, f"{at}: the share of its time between iterations", between, -SLACK, most)


def check_ranks_together(where: str, at: str, record: Json) -> Iterator[Finding]:
    """Check that every rank has the same columns and marks, and gives the same into the same all-reduces."""
    first, *others = record["ranks"]
    for rank in others:
        name = f"{at}, rank {rank['rank']}"
        columns = [sorted(one["samples"]) for one in (rank, first)]
        yield from differing(where, f"{name}: its columns", columns[0], columns[1], next_step=RUN_AGAIN)
        for column in ("marked", "all_reduce_calls", "all_reduce_bytes"):
            found, expected = rank["samples"].get(column), first["samples"].get(column)
            yield from differing(where, f"{name}: {column}", found, expected, next_step=RUN_AGAIN)


def _check_order(where: str, at: str, starts_s: list[float], times_s: list[float]) -> Iterator[Finding]:
    """Check that the clock of a rank only goes on: a time that was edited no longer fits between its neighbours."""
    for iteration, ((start_s, time_s), (next_s, _)) in enumerate(pairwise(zip(starts_s, times_s, strict=True))):
        if start_s + time_s > next_s + SLACK_S + SLACK * time_s:
            what = f"{at}: iteration {iteration} of {time_s:g} s"
            got = f"longer than the {next_s - start_s:g} s until the next began"
            yield Finding(where=where, what=what, got=got, expected="an end before that")


def _check_parts(where: str, at: str, here: str, row: Samples) -> Iterator[Finding]:
    """Check that parts are no longer than their whole, and that collection and learning are all of an iteration."""
    for whole, names in PARTS.items():
        whole_s = row.get(whole)
        parts = {name: part_s for name in names if (part_s := row.get(name)) is not None}
        if whole_s is None or not parts:
            continue
        most_s = whole_s * (1 + SLACK) + SLACK_S
        is_all = whole == "iteration_time_s" and len(parts) == len(names)
        least_s = whole_s * (1 - SLACK) - SLACK_S if is_all else 0.0
        beyond = [
            finding
            for name, part_s in parts.items()
            if not 0 <= part_s <= most_s
            for finding in outside(where, f"{at}: {name} {here}", part_s, 0, most_s, unit="s")
        ]
        yield from beyond
        if len(parts) > 1 and not beyond and not least_s <= sum(parts.values()) <= most_s:
            what = f"{at}: {' and '.join(parts)} {here}"
            yield from outside(where, what, sum(parts.values()), least_s, most_s, unit="s")


def _check_marks(where: str, at: str, iteration: int, row: Samples) -> Iterator[Finding]:
    """Check that marks are in their rhythm, and that sections were timed in marked iterations alone."""
    here = f"of iteration {iteration}"
    if "marked" in row:  # rounds of the first days have no such column: all were marked
        expected = float(iteration % MARKED_EVERY == FIRST_MARKED)
        yield from differing(where, f"{at}: marked {here}", row["marked"], expected)
    taken = [name for name in MARKED_COLUMNS if row.get(name) is not None]
    if row.get("marked", 1.0) == 0 and taken:
        yield Finding(where=where, what=f"{at}: {', '.join(taken)} {here}", got="measured", expected="not: not marked")
    for name, least in CONDITIONS.items():
        yield from outside(where, f"{at}: {name} {here}", row.get(name), least, math.inf)
    calls = row.get("all_reduce_calls")
    if calls is None:
        return
    if calls < 0 or calls != int(calls):
        yield Finding(where=where, what=f"{at}: all_reduce_calls {here}", got=f"{calls:g}", expected="a count")
    for name in ("all_reduce_time_s", "all_reduce_bytes"):
        if name in row and (row[name] is not None) != (calls > 0):
            expected_word = f"{'measured' if calls else 'missing'}, for {calls:g} calls"
            yield Finding(where=where, what=f"{at}: {name} {here}", got=str(row[name]), expected=expected_word)


def _check_library(where: str, at: str, here: str, row: Samples, case: Json, *, mps: bool) -> Iterator[Finding]:
    """Check the library's own frames per second against its own times, and these against ours.

    ``mps``: whether the process shares its GPU through CUDA MPS, so that it need not wait for its turn.
    """
    together = trainings(case)
    frames = case["num_envs_global"] // together * case["num_steps_per_env"]  # a library knows its own training only
    known = {name: value for name, value in row.items() if value is not None}
    if known.keys() >= {"rl_games.total_fps", "rl_games.step_inference_fps", "rl_games.update_time_s"}:
        library, collection = "rl_games", "rl_games.step_inference_fps"
        theirs = {collection: frames / known[collection], "rl_games.update_time_s": known["rl_games.update_time_s"]}
    elif found := [one for one in ("rsl_rl", "torchrl") if f"{one}.total_fps" in known]:
        (library,) = found
        theirs = {name: known[name] for name in (f"{library}.collection_time_s", f"{library}.learning_time_s")}
    else:
        return
    whole_s, total_s = frames / known[f"{library}.total_fps"], sum(theirs.values())
    slack_s = LIBRARY_TOLERANCE_S + LIBRARY_TOLERANCE_S * total_s + total_s**2 / frames  # fps may be a whole number
    what = f"{at}: the iteration by {library}.total_fps {here}"
    yield from outside(where, what, whole_s, total_s - slack_s, total_s + slack_s, unit="s")
    for (name, time_s), ours in zip(theirs.items(), PARTS["iteration_time_s"], strict=True):
        if ours in known:
            slack_s = LIBRARY_SLACK * known[ours] + SLACK_S * together
            what = f"{at}: the time by {name} {here}"
            yield from outside(where, what, time_s, known[ours] - slack_s, known[ours] + slack_s, unit="s")
    step_fps = known.get("rl_games.step_fps")
    if step_fps is not None and library == "rl_games":  # without inference
        on_gpu_s = known.get("environment_step_time_s", 0.0) if mps or together == 1 else 0.0
        least_s = on_gpu_s * (1 - HOST_SLACK) - SLACK_S * together
        most_s = theirs["rl_games.step_inference_fps"] * (1 + SLACK)
        what = f"{at}: the time by rl_games.step_fps {here}"
        yield from outside(where, what, frames / step_fps, least_s, most_s, unit="s")


def _check_learned(where: str, at: str, here: str, row: Samples, record: Json) -> Iterator[Finding]:
    """Check that an episode ends at the task's limit, a share is one, and a step draws all pictures."""
    case, workload = record["case"], record["workload"] or {}
    pictures, a_camera = row.get("control.pictures"), case["num_steps_per_env"] * case["num_envs"]
    if pictures is not None and (pictures <= 0 or pictures % a_camera):
        what, expected = f"{at}: control.pictures {here}", f"{a_camera} of every camera"
        yield Finding(where=where, what=what, got=f"{pictures:g}", expected=expected)
    yield from outside(where, f"{at}: success_rate {here}", row.get("success_rate"), 0, 1)
    length_s, dt_s, decimation = (workload.get(name) for name in ("episode_length_s", "env.sim.dt", "decimation"))
    if isinstance(length_s, float) and isinstance(dt_s, float) and isinstance(decimation, int):
        most = math.ceil(length_s / (dt_s * decimation)) + 1
        what = f"{at}: episode_length_mean {here}"
        yield from outside(where, what, row.get("episode_length_mean"), 0, most)
