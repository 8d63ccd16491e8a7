"""What to choose, as tables. Pure.

``frames`` is how many environment steps of all environments together the reader wants; hours and costs go with it.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from reports.analysis.time_split import GPU_MEMORY, Inside
from reports.analysis.time_to_reward import TimeToReward
from reports.display.html import (
    MISSING,
    Html,
    count,
    estimated,
    html_table,
    percent,
    percent_interval,
    rounds_text,
    seconds,
)
from reports.topics.cost.model import Choice, Option, scaled
from reports.topics.cost.sizes import SizeChoice
from suite.files.wording import counted
from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate

SECONDS_PER_HOUR: Final = 3600
NO_BREAK: Final = "\N{NO-BREAK SPACE}"


def in_short(choices: Sequence[Choice], *, frames: int, unit: str, label: str) -> Html:
    """One row a curve: the fewest hours, the cheapest, and where added ranks stop being worth it."""
    return html_table(
        ["Series", "Fewest hours", f"Fewest {unit}-hours", f"Most {unit}s worth adding", "How sure"],
        (
            [
                f"{one.series}: {one.curve}",
                f"{_hours(one.fastest.wall_s_per_frame, frames)}{NO_BREAK}h on{NO_BREAK}{one.fastest.world_size}",
                f"{_hours(_cost(one), frames)} on{NO_BREAK}{one.cheapest.number}",
                MISSING if one.knee is None else str(one.knee.number),
                _how_sure(one, unit),
            ]
            for one in choices
        ),
        label=label,
        num_text_columns=5,
    )


def options(choices: Sequence[Choice], *, frames: int, unit: str, label: str) -> Html:
    """One row for each measured number of ranks."""
    headings = [
        "Hours",
        f"{unit}-hours",
        f"Over the fewest {unit}-hours",
        f"Worth of each added {unit}",
        "Start-up in s",
        "Rounds",
    ]
    return html_table(
        ["Series", *headings],
        (
            [f"{_name(one, choices)}, {counted(option.world_size, unit)}", *_option(option, frames)]
            for one in choices
            for option in one.options
        ),
        label=label,
        text_headings=("Rounds",),
    )


def _option(option: Option, frames: int) -> list[str]:
    return [
        estimated(scaled(option.wall_s_per_frame, frames / SECONDS_PER_HOUR), seconds),
        _hours(option.rank_s_per_frame, frames),
        estimated(option.over_cheapest),
        estimated(option.worth),
        count(option.start_up_s),
        rounds_text([option.rounds]),
    ]


def sizes(choices: Sequence[SizeChoice], found: Mapping[str, Inside], *, label: str) -> Html:
    """One row for each measured number of environments."""
    return html_table(
        [
            "Library, stack, environments of a rank",
            "Total FPS",
            "Of the most",
            "Interval",
            GPU_MEMORY,
            "Frames per joule",
            "Rounds",
        ],
        (
            [
                f"{one.who}, {size.num_envs:,}",
                count(size.total_fps),
                percent(size.of_most.value),
                percent_interval(size.of_most.interval),
                _memory(found[size.case_id]),
                _frames_per_joule(found[size.case_id]),
                rounds_text([size.rounds]),
            ]
            for one in choices
            for size in one.sizes
        ),
        label=label,
        text_headings=("Rounds",),
    )


def rewards(rows: Sequence[tuple[str, CaseResult, TimeToReward]], *, unit: str, label: str) -> Html:
    """One row a case, with the reward that all of its curve reached. ``rows``: curve, case, time."""
    return html_table(
        ["Series", "Reward", "Iterations", "Seconds", "Interval in s", f"{unit}-seconds", "Rounds"],
        ([f"{curve}, {counted(result.case.world_size, unit)}", *_reward(result, time)] for curve, result, time in rows),
        label=label,
        text_headings=("Rounds",),
    )


def _reward(result: CaseResult, time: TimeToReward) -> list[str]:
    iterations = [number for number in time.round_iterations.values() if number is not None]
    return [
        f"{time.reward:.3g}",
        f"{statistics.median(iterations):g}" if iterations else MISSING,
        seconds(time.time_s),
        "{} to {}".format(*map(seconds, time.interval_s)) if time.interval_s else MISSING,
        seconds(time.of_all_ranks_s(result.case.world_size)),
        rounds_text([len(result.completed)]),
    ]


def _memory(found: Inside) -> str:
    """In use on the GPU where it was sampled, else the peak of torch's allocator, which is a part of it."""
    if found.gpu_memory_gb is not None:
        return f"{found.gpu_memory_gb.median:.3g}"
    return MISSING if found.peak_memory_gb is None else f"{found.peak_memory_gb.median:.3g} (torch alone)"


def _frames_per_joule(found: Inside) -> str:
    energy = found.joules_per_million_frames
    return "not measured" if energy is None else f"{1e6 / energy.median:,.0f}"


def _name(one: Choice, choices: Sequence[Choice]) -> str:
    """The curve only where a series has several."""
    is_only = sum(other.series == one.series for other in choices) == 1
    return one.series if is_only else f"{one.series}: {one.curve}"


def _cost(one: Choice) -> Estimate:
    return next(option.rank_s_per_frame for option in one.options if option.world_size == one.cheapest.number)


def _how_sure(one: Choice, unit: str) -> str:
    """Of the cheapest and of the most worth adding; the fewest hours are what the means say."""
    if len(one.options) == 1:
        return f"nothing to choose: measured on {counted(one.fastest.world_size, unit)} alone"
    asked = {f"fewest {unit}-hours": one.cheapest} | ({"most": one.knee} if one.knee else {})
    unsure = {name: pick.reason for name, pick in asked.items() if pick.word == "within noise"}
    if not unsure:
        return "clear"
    if len(unsure) < len(asked):
        return "; ".join(f"{name} within noise: {reason}" for name, reason in unsure.items())
    return f"within noise: {'; '.join(dict.fromkeys(unsure.values()))}"


def _hours(seconds_per_frame: Estimate, frames: int) -> str:
    return seconds(seconds_per_frame.value * frames / SECONDS_PER_HOUR)
