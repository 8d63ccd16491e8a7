"""The answer where nothing ran on one GPU and on several: frames, what raises them, what they wait for, their place."""

from collections.abc import Mapping
from typing import Final

from reports.accept.judgement import judge
from reports.accept.parts import Word
from reports.accept.published import measured as measured_runs
from reports.accept.published import published as published_runs
from reports.data.samples import PARTS
from reports.data.words import STACK_NAMES, environments_text, gpu_name, task_name
from reports.display.html import measured, runs_in
from reports.figures.compare import Row
from reports.figures.lines import Figure, figure, rows_of, tasks
from reports.figures.published import PLAIN
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.version import Version, versions_below
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL
from suite.statistics.speed import core_sentence, twice_the_core

RESULTS: Final = ROOT / "reports" / "results"
NOTHING: Final = "Nothing here trained on GPUs as shipped, so nothing is known of how training scales."
MAX_TASKS: Final = 3  # that are said one by one
IN_WORDS: Final = {  # of parts whose name in a chart is too short for a sentence
    PARTS["environment"]: "environment steps without physics and rendering (observations, rewards, resets)",
    PARTS["other"]: "the rollout without environment steps and inference",
}
HOW_SURE: Final[Mapping[Word, str]] = {
    "slow": "slower than",
    "within": "within the range of",
    "fast": "faster than",
    "open": "measured too seldom to compare with",
}


def sentences(version: Version) -> list[str]:
    """Return what each task processes, then what raises it, what it waits for, and where it lies."""
    best = []
    for task in tasks(version):
        known = [(row, fps) for row in rows_of(version, task) if (fps := figure(version, row, "frames_per_s"))]
        best += [max(known, key=lambda item: float(item[1]["value"]))] if known else []
    best = best[:MAX_TASKS]
    if not best:
        return [NOTHING]
    row, _ = best[0]
    texts = [_made(own, fps) for own, fps in best]
    about = [_more_environments(version), _waits(version, row), _placed(version, row["gpu_model"])]
    return [*texts, *filter(None, about)]


def _made(row: Row, fps: Figure) -> str:
    physics = "" if row["physics"] == "kitless" else f" on {STACK_NAMES[row['physics']]}"
    few = "" if fps["runs"] >= MIN_ROUNDS_FOR_INTERVAL else ", too few for a range"
    size = environments_text(row["environments_per_gpu"]) + (" on each GPU" if row["gpus"] > 1 else "")
    return (
        f"{task_name(row['task'])} with {row['library']}{physics} makes {measured(fps)} frames per second with"
        f" learning on {row['gpus']} x {gpu_name(row)}, with {size}, in {runs_in(fps, 'run')}{few}."
    )


def _more_environments(version: Version) -> str:
    """What the most environments brought that surely brought more."""
    rows = rows_by_id(version)
    pairs = [pair for pair in runs_of(version).pairs() if pair.change.column == "environments_per_gpu"]
    surely = [pair for pair in pairs if (rows[pair.id]["low"] or 0) > 1 and pair.of["workload"] == "train"]
    if not surely:
        return "How many environments fill it is not known: none here surely raised its frames."
    pair = max(surely, key=lambda pair: (pair.of["environments_per_gpu"], pair.id))
    more, fewer = (row["environments_per_gpu"] for row in (pair.of, pair.over))
    return (
        f"More environments on the GPU raise it: {more:,} in place of {fewer:,} make {measured(rows[pair.id])} times"
        " the frames."
    )


def _waits(version: Version, row: Row) -> str:
    """The largest part of an iteration, and how much of the time the GPU works."""
    shares = {part: share for name, part in PARTS.items() if (share := figure(version, row, f"{name}_share"))}
    busy = figure(version, row, "gpu_utilisation_percent")
    if not shares:
        return ""
    part, share = max(shares.items(), key=lambda item: float(item[1]["value"]))
    works = f", and the GPU runs kernels in {measured(busy)} % of the time" if busy else ""
    slope = rows_by_id(version).get(f"{row['set']}/{row['series']}/{row['library']}/{row['workload']}/core_slope")
    sentence = f"The largest part of an iteration is {IN_WORDS.get(part, part)}: {measured(share)} of it{works}."
    if slope is None or slope["low"] is None:
        return sentence
    return f"{sentence} {core_sentence(slope['low'], slope['high'], measured(slope, twice_the_core))}"


def _placed(version: Version, model: str) -> str:
    """Where the configuration that most machines ran lies among those with the same GPUs, at equal core speed."""
    if not (versions := _stored(model)):
        return ""
    own = measured_runs(version, version.scaling).of_model(model)
    cases = judge(own, published_runs(versions), model).cases
    shipped = [case for case in cases if all(case.row[name] == value for name, value in PLAIN.items())]
    judged = max(shipped, key=lambda case: len(case.time.others), default=None)
    if judged is None or not judged.time.others:
        return ""
    times_s, row = judged.time.others.values(), judged.row
    less = sum(time_s > judged.time.value.value for time_s in times_s) or "none"
    return (
        f"{task_name(row['task'])}, {row['library']}, {environments_text(row['environments_per_gpu'])}:"
        f" {HOW_SURE[judged.word]} {counted(len(times_s), 'published machine')} with the same GPUs and packages,"
        f" at equal speed of CPU cores ({less} of them would be slower)."
    )


def _stored(model: str) -> tuple[Version, ...]:
    """Read the published versions; nothing where none of their files names the model, which is quicker to see."""
    files = RESULTS.glob("*/*/cases/*/*.json")
    return tuple(versions_below(RESULTS)) if any(model in path.read_text(encoding="utf-8") for path in files) else ()
