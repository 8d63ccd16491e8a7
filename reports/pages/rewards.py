"""What trainings learn: rewards over frames, and the time to a reward in words. Pure."""

import statistics
from collections.abc import Iterator
from typing import Final

from reports.display.charts.curves import stride_of
from reports.display.charts.drawing import Point
from reports.display.html import measured
from reports.figures.compare import Row
from reports.figures.lines import Figure, Line
from reports.figures.tables import runs_of
from reports.sets.version import Version
from suite.files.wording import counted, joined

REWARD: Final = (
    "The reward is the one after 90 % of the rise that every run on the fewest GPUs has. Times are of"
    " iterations, without start-up. Runs of one seed say nothing of another."
)


def curve(version: Version, row: Row, label: str) -> Iterator[Point]:
    """Yield the median reward of the runs of a configuration over million frames, as far as a phone shows it."""
    runs = runs_of(version)
    every = list(zip(*runs.rewards(runs.of(row)).values(), strict=False))
    stride = stride_of(len(every))
    for iteration, rewards in enumerate(every, start=1):
        known = [reward for reward in rewards if reward is not None]
        if known and (iteration == len(every) or iteration % stride == 0):
            yield Point(label=label, x=iteration * row["frames_per_iteration"] / 1e6, y=statistics.median(known))


def time_to_reward(line: Line) -> str:
    """Say when a line's runs have the reward on each number of GPUs; empty where that is not known of two."""
    reward = line.figure(line.base, "reward_mean_to_reach")
    if reward is None or not line.figure(line.base, "time_to_reward_s") or len(line.rows) == 1:
        return ""
    return f"{line.label}: a reward of {measured(reward)} after {times(line)} ({seeds(line)})."


def fewest_seeds(line: Line) -> Figure:
    """How many seeds the runs had on the number of GPUs that had fewest."""
    every = (own for row in line.rows if (own := line.figure(row, "seed")))
    return min(every, key=lambda own: float(own["value"]))


def seeds(line: Line) -> str:
    """``1 seed``."""
    return measured(fewest_seeds(line), lambda number: counted(int(number), "seed"))


def times(line: Line) -> str:
    """``11.0 s on 1, 12.3 s on 2 and 12.8 s on 4 GPUs``, and where a run ended before it had the reward."""
    known = [(row["gpus"], line.figure(row, "time_to_reward_s")) for row in line.rows]
    reached = [(gpus, f"{measured(time)} s on {gpus}") for gpus, time in known if time]
    missing = [str(gpus) for gpus, time in known if not time]
    never = f"; on {joined(missing)} not every run had it" if missing else ""
    return f"{joined([text for _, text in reached])} GPU{'' if reached[-1][0] == 1 else 's'}{never}"
