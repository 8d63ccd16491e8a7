"""Several trainings on one GPU: the answer, a chart and a table of every set."""

from collections.abc import Callable, Sequence

from reports.analysis.curves import task_name
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    count,
    estimated,
    heading,
    html_table,
    machine_cell,
    percent,
    ratio,
    together,
)
from reports.display.per_set import failures_in_words
from reports.sets.version import ResultSet, Version
from reports.topics.shared_gpu.chart import drawn
from reports.topics.shared_gpu.model import (
    Group,
    Range,
    Shared,
    both_ways,
    groups,
    range_of_gains,
    range_of_speeds,
    ranges_over_without,
    without_mps,
)

HEADINGS = (
    "Case",
    "Trainings at once",
    "Total frames/s",
    "Times one training",
    "Each, frames/s",
    "Each, compared with alone",
    "All at work",
    "Through MPS",
    "Runs",
)
HEADINGS_BOTH_WAYS = (
    "Case",
    "Machine",
    "Trainings at once",
    "Without MPS, frames/s",
    "Through MPS, frames/s",
    "Through MPS, times without",
)


def has_groups(version: Version) -> bool:
    return any(_of(one) for one in version.scaling)


def answer(version: Version) -> Html:
    """How much the total rises, how fast each training still is, and what MPS changes, over all sets."""
    found = without_mps([group for one in version.scaling for group in _of(one)])
    return answer_of_page(f"{_gain(found)}{_each(found)}{_mps(version)}")


def sets(version: Version) -> Html:
    """A chart with its claim as title, and a table, for every set that has such cases."""
    parts: list[Displayed] = []
    for one in version.scaling:
        if found := _of(one):
            parts += _shown(one, found, is_named=version.must_name_sets)
    return together(parts)


def with_and_without_mps(version: Version) -> Html:
    """A table of the cases that one machine ran both ways; nothing where there are none."""
    rows = [
        (
            each.through.result.case.case_id,
            machine_cell(each.machine.name),
            str(each.trainings),
            estimated(each.without.total_fps, count),
            estimated(each.through.total_fps, count),
            estimated(each.over_without),
        )
        for each in both_ways(version)
    ]
    table = html_table(HEADINGS_BOTH_WAYS, rows, label="Trainings on one GPU with and without MPS", num_text_columns=2)
    return together([table] if rows else [])


def _of(one: ResultSet) -> tuple[Group, ...]:
    return groups(one.campaign.results)


def _shown(one: ResultSet, found: Sequence[Group], *, is_named: bool) -> list[Displayed]:
    label = f"Trainings at the same time on one GPU{f', {one.title}' if one.title else ''}"
    rows = [_row(each) for group in found for each in group.numbers]
    table = html_table(HEADINGS, rows, label=label, text_headings=("Through MPS",))
    parts: list[Displayed] = [heading(f"{one.title}: {_gain(found)}" if is_named else _gain(found))]
    if any(each.over_one for group in found for each in group.numbers[1:]):
        parts.append(drawn(one.campaign, found, [name_of(group, found) for group in found], data=table))
    return [*parts, table, *failures_in_words(each.result for group in found for each in group.numbers)]


def name_of(group: Group, found: Sequence[Group]) -> str:
    """Return the task and the library, and the case id where that does not tell two groups apart."""
    names = [_short(other) for other in found]
    return _short(group) if names.count(_short(group)) == 1 else group.case.case_id


def _short(group: Group) -> str:
    return f"{task_name(group.case.task)}, {group.case.rl_library}"


def _row(each: Shared) -> list[str]:
    return [
        each.result.case.case_id,
        str(each.trainings),
        estimated(each.total_fps, count),
        "1" if each.trainings == 1 else estimated(each.over_one),
        MISSING if each.each_fps is None else " to ".join(dict.fromkeys(map(count, each.each_fps))),
        "" if each.trainings == 1 else estimated(each.each_over_alone, percent),
        "" if each.trainings == 1 else percent(each.all_at_work),
        {True: "yes", False: "no", None: MISSING}[each.mps],
        str(len(each.result.completed)),
    ]


def _gain(found: Sequence[Group]) -> str:
    """Say for each number of trainings what it makes of one's frames, over the groups."""
    gains = range_of_gains(found)
    if not gains:
        return "No case completed both with one training and with several on the GPU."
    said = [f"{number} trainings together process {_range(values, ratio)}" for number, values in gains.items()]
    where = "On one GPU, through CUDA MPS," if all(group.mps for group in found) else "On one GPU"
    return f"{where} {', and '.join(said)} times the frames of one."


def _each(found: Sequence[Group]) -> str:
    speeds = range_of_speeds(found)
    said = [f"each of {number} runs at {_range(values, percent)}" for number, values in speeds.items()]
    return f" Compared with one alone, {', and '.join(said)} of its speed." if said else ""


def _mps(version: Version) -> str:
    """Say for each number of trainings what MPS makes of their frames, over what a machine ran both ways."""
    found = ranges_over_without(each for each in both_ways(version) if each.trainings > 1)
    said = [f"{number} trainings together process {_range(values, ratio)}" for number, values in found.items()]
    return f" Through CUDA MPS, {', and '.join(said)} times the frames that they process without it." if said else ""


def _range(values: Range, text: Callable[[float], str]) -> str:
    return " to ".join(dict.fromkeys(map(text, values)))
