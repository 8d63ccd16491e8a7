"""Simulation and learning at the same time: the answer, and a table of every set."""

from reports.analysis.curves import task_name
from reports.display.html import Html, answer_of_page, count, estimated, html_table, percent, ratio, together
from reports.display.per_set import failures_in_words, under_titles
from reports.sets.version import ResultSet, Version
from reports.topics.pipeline.model import Pipeline, pipelines
from suite.files.wording import counted

HEADINGS = (
    "Case",
    "Frames/s",
    "Times in turn",
    "Frames/s while collecting",
    "Optimiser steps/s",
    "Rollouts a sync",
    "Staleness",
    "Overlapped",
    "Runs",
)


def has_pipelines(version: Version) -> bool:
    return any(_of(one) for one in version.scaling)


def answer(version: Version) -> Html:
    """Say how many times the frames of the same work in turn each pipeline processes."""
    found = [each for one in version.scaling for each in _of(one) if each.over_in_turn]
    if not found:
        return answer_of_page("No pipeline completed beside the same training in turn.")
    said = ", and ".join(
        f"{estimated(each.over_in_turn)} times the frames of the same work in turn ({_name(each)})" for each in found
    )
    return answer_of_page(f"Simulating and learning at the same time processes {said}.")


def sets(version: Version) -> Html:
    """A table for every set that has pipelines."""
    return under_titles([one for one in version.scaling if _of(one)], _shown, are_named=version.must_name_sets)


def _of(one: ResultSet) -> tuple[Pipeline, ...]:
    return pipelines(one.campaign.results)


def _shown(one: ResultSet) -> Html:
    found = _of(one)
    label = f"Simulation and learning at the same time{f', {one.title}' if one.title else ''}"
    table = html_table(HEADINGS, map(_row, found), label=label)
    return together([table, *failures_in_words(each.result for each in found)])


def _name(each: Pipeline) -> str:
    return f"{task_name(each.case.task)} on {counted(each.case.world_size, 'GPU')}"


def _row(each: Pipeline) -> list[str]:
    return [
        each.case.case_id,
        estimated(each.fps, count),
        estimated(each.over_in_turn),
        estimated(each.collecting_fps, count),
        estimated(each.updates_per_s),
        ratio(each.batches_between_syncs),
        ratio(each.staleness),
        percent(each.overlapped),
        str(len(each.result.completed)),
    ]
