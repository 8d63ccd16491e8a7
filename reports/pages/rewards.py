"""What trainings learn: rewards over frames, and the time to a reward in words. Pure."""

import statistics
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reports.data.words import environments_text
from reports.display.charts.curves import stride_of
from reports.display.charts.drawing import Point
from reports.display.charts.speedup import PREDICTED
from reports.display.html import measured
from reports.figures.compare import Row, processes_of
from reports.figures.lines import Figure, Line, estimate, figure
from reports.figures.tables import runs_of
from reports.sets.machines import plain_name
from reports.sets.version import Version
from suite.files.wording import counted, joined
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, Interval

REWARD: Final = (
    "The reward is the one after 90 % of the rise that every run on the fewest GPUs has. Times are of"
    " iterations, without start-up. Runs of one seed say nothing of another."
)
LEARNED: Final = (
    "how many frames it takes is measured with as many processes on one GPU, which learn the same; the time is these"
    " frames over the frames per second of the GPUs. They ran on"
)


def curve(version: Version, row: Row, label: str) -> Iterator[Point]:
    """Yield the median reward of the runs that say how a configuration learns over million frames, as on a phone."""
    runs = runs_of(version)
    learned = runs.learned(row) if figure(version, row, "reached") else None
    every = list(zip(*runs.rewards(runs.of(learned or row)).values(), strict=False))
    stride = stride_of(len(every))
    for iteration, rewards in enumerate(every, start=1):
        known = [reward for reward in rewards if reward is not None]
        if known and (iteration == len(every) or iteration % stride == 0):
            yield Point(label=label, x=iteration * row["frames_per_iteration"] / 1e6, y=statistics.median(known))


def learned_at(line: Line, *rows: Row) -> set[str]:
    """The machines on which it was measured what these configurations learn; none if their own runs say that."""
    runs, own_rows = runs_of(line.version), [row for row in rows if line.figure(row, "reached")]
    sets = {name for row in own_rows if (learned := runs.learned(row)) for name in runs.of(learned)["set"].unique()}
    return {plain_name(own.campaign.largest_place) for own in line.version.sets if own.name in sets}


def point(label: str, x: int, own: Mapping[str, Any], kind: str = "") -> Point:
    """A figure in a chart, hollow without an interval."""
    interval = estimate(own).interval
    return Point(label=label, x=x, y=own["value"], interval=interval, is_sure=interval is not None, kind=kind)


def time_to_reward(line: Line) -> str:
    """Say when a line's runs have the reward on each number of GPUs; empty where that is not known of two."""
    reward = line.figure(line.base, "reward_mean_to_reach")
    if reward is None or not line.figure(line.base, "time_to_reward_s"):
        return ""
    return f"{line.label}: a reward of {measured(reward)} after {times(line)} ({seeds(line)})."


def seeds(line: Line, *others: Figure | None) -> str:
    """``1 seed: too few to say``: of the number of GPUs that has fewest, and of ``others``."""
    fewest = min((own for own in (line.seeds, *others) if own), key=lambda own: int(own["value"]), default=None)
    number = 0 if fewest is None else fewest["value"]
    text = measured(fewest, lambda value: counted(int(value), "seed"))
    return text if number >= MIN_ROUNDS_FOR_INTERVAL else f"{text}: too few to say"


def sooner(line: Line) -> Mapping[int, tuple[Figure | None, str]]:
    """How many times as soon the reward comes, if every run had it, on more GPUs, or on one with their environments."""
    known, base, is_over_gpus = {}, line.base, line.rows[-1]["gpus"] > line.base["gpus"]
    for row in line.rows[1:]:
        gpus, rest = (row["gpus"], 0) if is_over_gpus else divmod(row["environments"], base["environments"])
        if not rest and (row in line.learned or line.figure(row, "sooner")):
            known[gpus] = line.figure(row, "sooner"), ""
    for gpus in map(processes_of, runs_of(line.version).learned_on_more(line.rows[-1]) if is_over_gpus else ()):
        if line.figure(base, f"{gpus}/reached"):
            known[gpus] = line.figure(base, f"{gpus}/sooner_predicted"), PREDICTED
    return known


def filled_or_added(filled: Line, added: Line) -> str:
    """Say whether one GPU with the environments of several brings the reward sooner; empty if they are no rivals."""
    one, several = sooner(filled), sooner(added)
    both = [(*own, *several[gpus], gpus) for gpus, own in one.items() if gpus in several]
    bases = {(own.base["gpu_model"], (own.figure(own.base, "reached") or {}).get("over")) for own in (filled, added)}
    if len(bases) > 1 or added.base["scaling"] != "weak" or not both:
        return ""
    # The most GPUs of which both are known, and measured.
    ratio, _, rival, kind, gpus = max(both, key=lambda item: (bool(item[0] and item[2]), not item[3], item[4]))
    size, number = filled.base["environments"], counted(gpus, "GPU")
    comes = [f"{measured(own)} times as soon" if own else "not in every run" for own in (ratio, rival)]
    claim = _claim(*(estimate(own).interval if own else None for own in (ratio, rival)))
    return (
        f"{claim} than {f'is predicted of {number}' if kind else number}: against one with {environments_text(size)} it"
        f" comes {comes[0]} with {environments_text(gpus * size)}, and {comes[1]} on {number} ({filled.label};"
        f" {seeds(filled, added.seeds, added.figure(added.base, f'{gpus}/seeds'))})."
    )


def _claim(filled: Interval | None, added: Interval | None) -> str:
    """What is clear only where the intervals do not overlap."""
    if filled and added and (filled[0] > added[1] or filled[1] < added[0]):
        return f"Filling one GPU brings the reward {'sooner' if filled[0] > added[1] else 'later'}"
    return f"It is {'within noise' if filled and added else 'open'} whether filling one GPU brings the reward sooner"


def times(line: Line) -> str:
    """``11.0 s on 1, 12.3 s on 2 and 12.8 s on 4 GPUs``, and where a run ended before it had the reward."""
    known = [(row["gpus"], line.figure(row, "time_to_reward_s"), line.figure(row, "reached")) for row in line.rows]
    is_learned = any(reached for *_, reached in known)
    reached = [(gpus, f"{measured(time)} s on {gpus}") for gpus, time, _ in known if time]
    missing = [str(gpus) for gpus, time, runs in known if not time and (runs or not is_learned)]
    never = f"; on {joined(missing)} not every run had it" if missing else ""
    return f"{joined([text for _, text in reached])} GPU{'' if reached[-1][0] == 1 else 's'}{never}"
