"""Deterministic settings: the answer, a chart and a table of all sets."""

from collections.abc import Sequence

from reports.analysis.curves import task_name
from reports.analysis.rows import Failure, failures_of
from reports.display.html import (
    MISSING,
    Displayed,
    Html,
    answer_of_page,
    bullets,
    estimated,
    heading,
    html_table,
    ratio,
    seconds,
    together,
)
from reports.sets.version import ResultSet, Version
from reports.topics.determinism.chart import drawn
from reports.topics.determinism.model import Pair, Repeats, pairs
from suite.files.wording import counted, listed

HEADINGS = (
    "Case",
    "As shipped, s/iteration",
    "Deterministic, s/iteration",
    "Times as long",
    "Runs of one seed, as shipped",
    "Runs of one seed, deterministic",
)


def has_pairs(version: Version) -> bool:
    return any(_of(one) for one in version.scaling)


def answer(version: Version) -> Html:
    """What it costs and what it gives, over the pairs of all sets."""
    found = [pair for one in version.scaling for pair in _of(one)]
    return answer_of_page(f"{_cost(found)} {_equality(found)}")


def sets(version: Version) -> Html:
    """A chart with its claim as title, and a table, for every set that has such cases."""
    parts: list[Displayed] = []
    for one in version.scaling:
        if found := _of(one):
            parts += _shown(one, found, is_named=version.must_name_sets)
    return together(parts)


def _of(one: ResultSet) -> tuple[Pair, ...]:
    return pairs(one.campaign.results)


def _shown(one: ResultSet, found: Sequence[Pair], *, is_named: bool) -> list[Displayed]:
    title = f"Deterministic settings and as shipped{f', {one.title}' if one.title else ''}"
    table = html_table(
        HEADINGS, map(_row, found), label=title, text_headings=[name for name in HEADINGS if name.startswith("Runs")]
    )
    failures = [failure for pair in found for failure in failures_of(pair.deterministic)]
    parts: list[Displayed] = [heading(f"{one.title}: {_cost(found)}" if is_named else _cost(found))]
    if any(pair.longer for pair in found):
        names = {pair.deterministic.case.case_id: name_of(pair, found) for pair in found}
        parts.append(drawn(one.campaign, found, names, data=table))
    parts.append(table)
    if failures:
        parts.append(bullets(_failures(failures)))
    return parts


def _failures(found: Sequence[Failure]) -> list[str]:
    """Runs of one case that ended in the same way are one sentence."""
    rounds: dict[tuple[str, str], list[int]] = {}
    for each in found:
        rounds.setdefault((each.case_id, f"{each.outcome}. {each.reason}"), []).append(each.round)
    return [f"{case_id}, {listed('run', numbers)}: {what}" for (case_id, what), numbers in rounds.items()]


def name_of(pair: Pair, found: Sequence[Pair]) -> str:
    """Return the task and the library, and the case id where that does not tell two pairs apart."""
    names = [_short(other) for other in found]
    return _short(pair) if names.count(_short(pair)) == 1 else pair.deterministic.case.case_id


def _short(pair: Pair) -> str:
    return f"{task_name(pair.deterministic.case.task)}, {pair.deterministic.case.rl_library}"


def _row(pair: Pair) -> list[str]:
    times = (estimated(time_s, seconds) for time_s in pair.times_s)
    return [pair.deterministic.case.case_id, *times, estimated(pair.longer), *map(_said, pair.repeats)]


def _said(found: Repeats | None) -> str:
    if found is None:
        return MISSING
    if found.are_equal:
        return f"{found.runs} runs, equal bit for bit"
    since = "equal rewards" if found.differ_from is None else f"rewards differ from iteration {found.differ_from}"
    return f"{found.runs} runs, {counted(found.outcomes, 'result')}, {since}"


def _cost(found: Sequence[Pair]) -> str:
    longer = sorted((pair.longer for pair in found if pair.longer), key=lambda each: each.value)
    if not longer:
        return "No case completed both with deterministic settings and as shipped, so their cost is unknown."
    low, high = ratio(longer[0].value), ratio(longer[-1].value)
    times = estimated(longer[0]) if len(longer) == 1 else f"{low} to {high}"
    few = "" if all(each.interval for each in longer) else ", in too few runs to be sure"
    return f"With deterministic settings an iteration takes {times} times as long as without{few}."


def _equality(found: Sequence[Pair]) -> str:
    shipped, deterministic = ([each for pair in found if (each := pair.repeats[way])] for way in (0, 1))
    if not deterministic:
        return "Whether runs of one seed are then equal is unknown: no case has two completed runs of one seed."
    if shipped and _equal(shipped) == _equal(deterministic):
        return f"With them and as shipped, runs of one seed {_equal(deterministic)}."
    without = f"; as shipped they {_equal(shipped)}" if shipped else ""
    return f"With them, runs of one seed {_equal(deterministic)}{without}."


def _equal(found: Sequence[Repeats]) -> str:
    """``found``: of each case that has runs to compare."""
    equal = sum(each.are_equal for each in found)
    if equal in (0, len(found)):
        return "are equal bit for bit" if equal else "are not equal bit for bit"
    return f"are equal bit for bit in {equal} of {len(found)} cases"
