"""Stacks beside each other, and several nodes beside one: the same task and ranks, and one thing that differs."""

from collections.abc import Callable, Iterator, Sequence

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import interconnect_of, is_emulated
from reports.analysis.pairs_of_cases import CasePair, nodes_side_by_side, stacks_side_by_side
from reports.analysis.stack_parts import StackPair, stack_pairs
from reports.display import pair_tables
from reports.display.addresses import address_of_series
from reports.display.html import Displayed, Html, answer_of_page, bullets, heading, link, paragraph, percent, together
from reports.display.series_tables import STACK_NAMES
from reports.sets.version import ResultSet, Version
from reports.topics.others import pairs_chart as charts
from suite.files.wording import are, counted
from suite.schema.record import CaseResult, Stack

type Find = Callable[[Sequence[CaseResult]], tuple[CasePair, ...]]


def has_nodes(version: Version) -> bool:
    return any(
        result.case.nnodes > 1 and result.completed for one in version.scaling for result in one.campaign.results
    )


def stacks_answer(version: Version) -> Html:
    """How much longer iterations take, for each two stacks that were compared."""
    said = [
        f"On {STACK_NAMES[ours]} an iteration is {times} than on {STACK_NAMES[theirs]}, in"
        f" {counted(len(pairs), 'comparison')}; {sum(pair.speed == 'slower' for pair in pairs)} of them"
        f" {are(len(pairs))} surely slower."
        for (ours, theirs), pairs in pairs_by_stacks(version).items()
        if (times := _longer([pair.ratio for pair in pairs]))
    ]
    return answer_of_page(" ".join(said) or "No two stacks completed the same case, so nothing is known of both.")


def pairs_by_stacks(version: Version) -> dict[tuple[Stack, Stack], list[StackPair]]:
    """Return the pairs that completed, by their stacks, that of the other case last."""
    found: dict[tuple[Stack, Stack], list[StackPair]] = {}
    for series in _series_of(version):
        for pair in stack_pairs(series):
            if pair.ratio.slower_by:
                found.setdefault((pair.case.case.stack, pair.base.case.stack), []).append(pair)
    return found


def nodes_answer(version: Version) -> Html:
    """How much longer iterations take on several nodes."""
    pairs = [pair for series in _series_of(version) for pair in _on_nodes(series.results)]
    times = _longer(pairs)
    emulated = sum(is_emulated(pair.case) for pair in pairs)
    where = "nodes, real and simulated," if emulated else "nodes"
    if emulated == len(pairs):
        where = "simulated nodes of one machine"
    return answer_of_page(
        f"On several {where} an iteration is {times} than on one, in {counted(len(pairs), 'comparison')}."
        if times
        else "No case completed on one node and on several, so what the network between nodes costs is not known."
    )


def _longer(pairs: Sequence[CasePair]) -> str:
    """Such as ``1.0 % shorter to 4.0 % longer``, over those that completed; empty without any."""
    known = longer_on_nodes(pairs)
    if not known:
        return ""
    ends = [(percent(abs(value)), "longer" if value >= 0 else "shorter") for value in (known[0], known[-1])]
    (low, low_word), (high, high_word) = ends
    if low_word != high_word:
        return f"{low} {low_word} to {high} {high_word}"
    return f"{' to '.join(dict.fromkeys((low, high)))} {high_word}"


def _series_of(version: Version) -> Iterator[Campaign]:
    for one in version.scaling:
        yield from (one.campaign.series(name) for name in one.campaign.series_names)


def stacks(version: Version) -> Html:
    """Of every series with more than one stack: chart of several points, table, and what the difference is made of."""

    def shown(series: Campaign, pairs: Sequence[CasePair], label: str) -> list[Displayed]:
        found = stack_pairs(series)
        table = pair_tables.stacks(found, {row.case_id: row for row in series.rows}, label=label)
        chart = [charts.ratios(series, pairs, data=table)] if len(pairs) > 1 else []  # one point says what its row says
        return [
            *chart,
            table,
            bullets(map(pair_tables.stack_in_words, found)),
            pair_tables.parts_of_stacks(found, label=f"Parts of iterations: {label}"),
        ]

    return _of_every_series(version, stacks_side_by_side, shown)


def nodes(version: Version) -> Html:
    """Of every series that ran on one node and on several: chart of several points, and table."""

    def shown(series: Campaign, pairs: Sequence[CasePair], label: str) -> list[Displayed]:
        table = pair_tables.nodes(pairs, {row.case_id: row for row in series.rows}, label=label)
        return [charts.costs(series, pairs, data=table), table] if len(pairs) > 1 else [table]

    found = _of_every_series(version, _on_nodes, shown)
    every = [pair for series in _series_of(version) for pair in nodes_side_by_side(series.results)]
    left_out = sum(pair.slower_by is None for pair in every)
    if not left_out:
        return found
    said = f"{counted(left_out, 'case')} did not complete on one node and on several, and {are(left_out)} left out."
    return together([found, paragraph(said)])


def _on_nodes(results: Sequence[CaseResult]) -> tuple[CasePair, ...]:
    """Return the cases that completed on several nodes and on one, each with the latter."""
    return tuple(pair for pair in nodes_side_by_side(results) if pair.slower_by is not None)


def where_nodes_were(version: Version) -> Html:
    """What the nodes were and how they exchanged data; cases on several nodes that have nothing to be compared with."""
    return bullets(sentence for one in version.scaling for sentence in _about_nodes(version, one))


def _about_nodes(version: Version, one: ResultSet) -> list[str]:
    spread = [result for result in one.campaign.results if result.case.nnodes > 1 and result.completed]
    title = one.title or "This campaign"
    labels = dict.fromkeys(record.environment.host_label for result in spread for record in result.completed)
    names = ", ".join(version.machine_names.get(label, label) if label else "no label" for label in labels)
    crossed = dict.fromkeys(interconnect_of(result) or "not recorded" for result in spread)
    sentences = [
        (
            f"{title}: {counted(len(spread), 'case')} on several nodes. Machines: {names}."
            f" Interconnect: {', '.join(crossed)}."
        )
    ]
    if any(map(is_emulated, spread)):
        sentences.append(
            f"{title}: emulated. The nodes are parts of one host that were made to talk as nodes do, so what a real"
            " network costs was not measured."
        )
    paired = {pair.case.case.case_id for pair in nodes_side_by_side(one.campaign.results)}
    alone = [result.case.case_id for result in spread if result.case.case_id not in paired]
    if alone:
        sentences.append(f"{title}: not measured on fewer nodes, so not compared: {', '.join(alone)}.")
    return sentences if spread else []


def _of_every_series(
    version: Version, find: Find, show: Callable[[Campaign, Sequence[CasePair], str], list[Displayed]]
) -> Html:
    parts: list[Displayed] = []
    for one in version.scaling:
        for name in one.campaign.series_names:
            series = one.campaign.series(name)
            pairs = find(series.results)
            if pairs:
                title = f"{name}: {one.title}" if len(version.scaling) > 1 else name
                parts.append(heading(link(title, address_of_series(series.rows[0].task, name))))
                parts += show(series, pairs, f"{find.__name__.replace('_', ' ').capitalize()} of {title}")
    return together(parts)


def longer_on_nodes(pairs: Sequence[CasePair]) -> list[float]:
    """Return how much longer iterations take, of the pairs that completed, least first."""
    return sorted(pair.slower_by.value for pair in pairs if pair.slower_by)
