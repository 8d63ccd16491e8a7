"""The samples of a rank against each other: parts within their wholes, the library's clock beside ours. Pure."""

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from typing import Final

from reports.verification.finding import RESTORE, RUN_AGAIN, Finding, differing, outside
from suite.schema.record import RankRecord, RunRecord

# What every rank that trained has measured in every iteration.
REQUIRED_COLUMNS: Final = ("start_s", "iteration_time_s", "collection_time_s", "learning_time_s")
# What is timed inside what; parts of one whole do not overlap.
PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "iteration_time_s": ("collection_time_s", "learning_time_s"),
    "collection_time_s": ("environment_step_time_s", "inference_time_s"),
    "learning_time_s": ("all_reduce_time_s",),
    "environment_step_time_s": ("simulate_time_s", "render_time_s"),
}
# Taken in marked iterations only.
MARKED_COLUMNS: Final = (
    *PARTS["collection_time_s"],
    *PARTS["learning_time_s"],
    *PARTS["environment_step_time_s"],
    "all_reduce_calls",
    "all_reduce_bytes",
)
# Iterations follow each other, and parts lie within their whole; timers of a GPU and of its host differ by a little.
SLACK: Final = 0.01
SLACK_S: Final = 0.002
LIBRARY_SLACK: Final = 0.05  # a library's sections begin and end at other lines than ours: at most 3.4 % until 2026-11
# Ours is a step's time on the GPU, theirs the host's, which goes on before the GPU is done: at most 10.3 % below ours
# until 2026-11, where several campaigns shared a GPU.
HOST_SLACK: Final = 0.15
LIBRARY_TOLERANCE_S: Final = 1e-4  # between the library's own figures: rl_games adds two times of its own
_SHA256: Final = re.compile(r"[0-9a-f]{64}")

Samples = Mapping[str, float | None]  # of one iteration


def check_rank(where: str, at: str, rank: RankRecord, record: RunRecord) -> Iterator[Finding]:
    """One rank of a completed round. What has holes or another length is named, and looked at no further."""
    case = record.case
    for name, column in sorted(rank.samples.items()):
        if len(column) != case.iterations:
            yield Finding(
                where=where,
                what=f"{at}: the number of {name}",
                got=str(len(column)),
                expected=str(case.iterations),
                next_step=RUN_AGAIN,
            )
    required = REQUIRED_COLUMNS if case.learns else ("start_s", "iteration_time_s")
    holes = [name for name in required if None in rank.samples.get(name, (None,))]
    if holes:
        yield Finding(
            where=where, what=f"{at}: {', '.join(holes)}", got="incomplete", expected="measured", next_step=RUN_AGAIN
        )
        return
    if case.learns and not _SHA256.fullmatch(rank.parameters_sha256 or ""):
        yield Finding(
            where=where, what=f"{at}: parameters_sha256", got=str(rank.parameters_sha256), expected="a SHA-256"
        )
    yield from _check_order(where, at, rank)
    for iteration in range(min(map(len, rank.samples.values()))):
        samples = {name: column[iteration] for name, column in rank.samples.items()}
        here = f"of iteration {iteration}"
        yield from _check_parts(where, at, here, samples)
        yield from _check_marks(where, at, here, samples)
        yield from _check_library(where, at, here, samples, case.frames_per_iteration)
        yield from _check_learned(where, at, here, samples, record)


def check_ranks_together(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    """Every rank marks the same iterations, and gives the same into the same all-reduces."""
    first, *others = record.ranks
    for rank, name in itertools.product(others, ("marked", "all_reduce_calls", "all_reduce_bytes")):
        expected = list(first.samples.get(name, ()))
        yield from differing(
            where, f"{at}, rank {rank.rank}: {name}", list(rank.samples.get(name, ())), expected, next_step=RUN_AGAIN
        )


def _check_order(where: str, at: str, rank: RankRecord) -> Iterator[Finding]:
    """The clock of a rank only goes on: a time that was edited no longer fits between its neighbours."""
    starts_s, times_s = numbers(rank, "start_s"), numbers(rank, "iteration_time_s")
    for iteration, ((start_s, time_s), (next_s, _)) in enumerate(
        itertools.pairwise(zip(starts_s, times_s, strict=False))
    ):
        if start_s + time_s > next_s + SLACK_S + SLACK * time_s:
            yield Finding(
                where=where,
                what=f"{at}: iteration {iteration} of {time_s:g} s",
                got=f"longer than the {next_s - start_s:g} s until the next began",
                expected="an end before that",
                next_step=RESTORE,
            )


def _check_parts(where: str, at: str, here: str, samples: Samples) -> Iterator[Finding]:
    """A part is no longer than its whole, nor are all of them; collection and learning are all of an iteration."""
    for whole, names in PARTS.items():
        whole_s = samples.get(whole)
        parts = [(name, part_s) for name in names if (part_s := samples.get(name)) is not None]
        if whole_s is None:
            continue
        most_s = whole_s * (1 + SLACK) + SLACK_S
        beyond = [
            finding
            for name, part_s in parts
            for finding in outside(where, f"{at}: {name} {here}", part_s, 0, most_s, unit="s")
        ]
        yield from beyond
        is_all = whole == "iteration_time_s" and len(parts) == len(names)
        least_s = whole_s * (1 - SLACK) - SLACK_S if is_all else 0.0
        if len(parts) > 1 and not beyond:
            what = f"{at}: {' and '.join(name for name, _ in parts)} {here}"
            yield from outside(where, what, sum(part_s for _, part_s in parts), least_s, most_s, unit="s")


def _check_marks(where: str, at: str, here: str, samples: Samples) -> Iterator[Finding]:
    """Sections are timed in marked iterations only, and one that was never called has neither time nor size."""
    marked = samples.get("marked", 1.0)  # rounds of the first days have no such column: all were marked
    if marked not in {0, 1}:
        yield Finding(where=where, what=f"{at}: marked {here}", got=str(marked), expected="0 or 1")
    taken = [name for name in MARKED_COLUMNS if samples.get(name) is not None]
    if marked == 0 and taken:
        yield Finding(where=where, what=f"{at}: {', '.join(taken)} {here}", got="measured", expected="not: not marked")
    yield from outside(where, f"{at}: core_probe_time_s {here}", samples.get("core_probe_time_s"), 1e-9, math.inf)
    calls = samples.get("all_reduce_calls")
    if calls is None:
        return
    if calls < 0 or calls != int(calls):
        yield Finding(where=where, what=f"{at}: all_reduce_calls {here}", got=f"{calls:g}", expected="a count")
    for name in ("all_reduce_time_s", "all_reduce_bytes"):
        if name in samples and (samples[name] is not None) != (calls > 0):
            expected = f"{'measured' if calls else 'missing'}, for {calls:g} calls"
            yield Finding(where=where, what=f"{at}: {name} {here}", got=str(samples[name]), expected=expected)


def _check_library(where: str, at: str, here: str, samples: Samples, frames: int) -> Iterator[Finding]:
    """What the RL library says of its own time follows from its own times, which are close to ours."""
    known = {name: value for name, value in samples.items() if value is not None}
    if known.keys() >= {"rl_games.total_fps", "rl_games.step_inference_fps", "rl_games.update_time_s"}:
        collection_s, update_s = frames / known["rl_games.step_inference_fps"], known["rl_games.update_time_s"]
        whole_s = frames / known["rl_games.total_fps"]
        theirs = {"rl_games.step_inference_fps": collection_s, "rl_games.update_time_s": update_s}
        what = f"{at}: the iteration by rl_games.total_fps {here}"
    elif known.keys() >= {"rsl_rl.total_fps", "rsl_rl.collection_time_s", "rsl_rl.learning_time_s"}:
        theirs = {name: known[name] for name in ("rsl_rl.collection_time_s", "rsl_rl.learning_time_s")}
        whole_s = frames / known["rsl_rl.total_fps"]
        what = f"{at}: the iteration by rsl_rl.total_fps {here}"
    else:
        return
    total_s = sum(theirs.values())
    slack_s = LIBRARY_TOLERANCE_S + LIBRARY_TOLERANCE_S * total_s + total_s**2 / frames  # fps may be a whole number
    yield from outside(where, what, whole_s, total_s - slack_s, total_s + slack_s, unit="s")
    for (name, time_s), ours in zip(theirs.items(), PARTS["iteration_time_s"], strict=True):
        if ours in known:
            slack_s = LIBRARY_SLACK * known[ours] + SLACK_S
            least_s, most_s = known[ours] - slack_s, known[ours] + slack_s
            yield from outside(where, f"{at}: the time by {name} {here}", time_s, least_s, most_s, unit="s")
    step_fps = known.get("rl_games.step_fps")
    if step_fps is not None:  # without inference
        step_s, least_s = frames / step_fps, known.get("environment_step_time_s", 0.0) * (1 - HOST_SLACK) - SLACK_S
        most_s = theirs["rl_games.step_inference_fps"] * (1 + SLACK)
        yield from outside(where, f"{at}: the time by rl_games.step_fps {here}", step_s, least_s, most_s, unit="s")


def _check_learned(where: str, at: str, here: str, samples: Samples, record: RunRecord) -> Iterator[Finding]:
    """An episode ends at the task's limit, a share is one, a step draws all pictures; nothing bounds a reward."""
    pictures, a_camera = samples.get("control.pictures"), record.case.num_steps_per_env * record.case.num_envs
    if pictures is not None and (pictures <= 0 or pictures % a_camera):
        what, expected = f"{at}: control.pictures {here}", f"{a_camera} of every camera"
        yield Finding(where=where, what=what, got=f"{pictures:g}", expected=expected)
    yield from outside(where, f"{at}: success_rate {here}", samples.get("success_rate"), 0, 1)
    length_s, dt_s, decimation = (
        (record.workload or {}).get(name) for name in ("episode_length_s", "env.sim.dt", "decimation")
    )
    if isinstance(length_s, float) and isinstance(dt_s, float) and isinstance(decimation, int):
        most = math.ceil(length_s / (dt_s * decimation)) + 1
        yield from outside(where, f"{at}: episode_length_mean {here}", samples.get("episode_length_mean"), 0, most)


def numbers(rank: RankRecord, name: str) -> list[float]:
    """A column without its holes."""
    return [value for value in rank.samples.get(name, ()) if value is not None]
