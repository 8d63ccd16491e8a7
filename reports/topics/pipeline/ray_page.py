"""Collecting in a process of Ray: the answer, and a table of every set."""

from typing import Final

from reports.analysis.curves import task_name
from reports.display.html import Html, answer_of_page, count, estimated, html_table, percent, together
from reports.display.per_set import failures_in_words, under_titles
from reports.sets.version import ResultSet, Version
from reports.topics.pipeline.ray_model import OverRay, over_ray
from suite.files.wording import counted
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL

HEADINGS: Final = ("Case", "Frames/s over Ray", "Frames/s here", "Times", "Collecting", "Runs")


def has_ray(version: Version) -> bool:
    return any(over_ray(one.campaign.results) for one in version.scaling)


def answer(version: Version) -> Html:
    """Say how many times the frames of the collector in the same process the one over Ray makes.

    Each task is spoken for by its case with the most runs over Ray; of equal ones, by the first.
    """
    compared = [each for one in version.scaling for each in over_ray(one.campaign.results) if each.over_here]
    if not compared:
        return answer_of_page("No collector completed both over Ray and in the same process.")
    tasks = dict.fromkeys(each.case.task for each in compared)
    found = [max((each for each in compared if each.case.task == task), key=_runs) for task in tasks]
    said = ", and ".join(f"{estimated(each.over_here, _times)} times the frames ({_measured(each)})" for each in found)
    return answer_of_page(f"Over Ray TorchRL's collector makes {said} of the one in the same process.")


def _measured(each: OverRay) -> str:
    """The task, and how many runs went over Ray where they are too few for an interval."""
    runs = _runs(each)
    few = f", {counted(runs, 'run')}" if runs < MIN_ROUNDS_FOR_INTERVAL else ""
    return task_name(each.case.task) + few


def _runs(each: OverRay) -> int:
    return len(each.result.completed)


def sets(version: Version) -> Html:
    """A table for every set in which a collector ran over Ray."""
    asked = [one for one in version.scaling if over_ray(one.campaign.results)]
    return under_titles(asked, _shown, are_named=version.must_name_sets)


def _shown(one: ResultSet) -> Html:
    found = over_ray(one.campaign.results)
    table = html_table(HEADINGS, map(_row, found), label=f"Collecting over Ray {one.title}".strip())
    return together([table, *failures_in_words(each.result for each in found)])


def _row(each: OverRay) -> list[str]:
    return [
        each.case.case_id,
        estimated(each.fps, count),
        estimated(each.here_fps, count),
        estimated(each.over_here, _times),
        percent(each.collecting),
        str(_runs(each)),
    ]


def _times(value: float) -> str:
    """Two digits after the point, and at least two that count: ``1.44``, ``0.013``."""
    return f"{value:#.2g}" if value < 0.1 else f"{value:.2f}"  # noqa: PLR2004 - from here on two digits count
