"""Measured curves carried to GPUs that nobody had, over networks that are assumed."""

from collections.abc import Iterator, Sequence
from typing import Final

from reports import beyond_tables
from reports.beyond import MAX_GPUS, WORTH, HeldOutCount
from reports.charts.beyond import efficiency
from reports.curves_beyond import Curve, curves_of
from reports.interconnects import read_interconnects
from reports.pages.published import named_source
from reports.result_sets import ResultSet, Version
from reports.tables import Displayed, Html, aside, bullets, heading, paragraph, percent, together
from suite.files.wording import counted
from suite.schema.record import CheckResult

MAX_FIGURES: Final = 6

type Curves = Sequence[tuple[ResultSet, tuple[Curve, ...]]]


def curves(version: Version) -> Curves:
    """Of every set; computed once for the page. Sweeps and tuned series are no curves over GPUs."""
    found: list[tuple[ResultSet, tuple[Curve, ...]]] = []
    every = [result for one in version.sets if not one.contributor for result in one.campaign.results]
    for one in version.scaling:
        series = [one.campaign.series(name) for name in one.campaign.series_names]
        scaled = [result for each in series if each.kind == "scaling" for result in each.results]
        found.append((one, curves_of(scaled, read_interconnects(), elsewhere=every)))
    return found


def warning(found: Curves) -> Html:
    """How far the predictions are from what was measured."""
    largest = [curve.group.measured[-1].world_size for _, curve in _carried(found)]
    if not largest:
        return paragraph("No curve of this version can be carried further; below stands why.")
    text = (
        f"At most {max(largest)} GPUs were measured. Everything beyond is arithmetic with assumed networks, up to"
        f" {MAX_GPUS // max(largest)} times as many ({MAX_GPUS // min(largest)} times for curves that end at"
        f" {min(largest)}), and no run has shown it. What learning makes of larger batches is not in it at all."
    )
    return aside("Predictions, not measurements", [text, _how_often_right(found)])


def _how_often_right(found: Curves) -> str:
    """What the model was worth where a measured count could be held out, in one sentence."""
    checked = [held for _, curve in _carried(found) if isinstance(held := curve.held_out, HeldOutCount)]
    if not checked:
        return "No curve has counts enough to hold one out, so the model is not checked at all."
    in_band = sum(one.is_in_band for one in checked)
    worst = max(abs(one.relative_error) for one in checked)
    return (
        f"The largest measured count could be held out in {counted(len(checked), 'curve')}: it lay in the band of"
        f" {in_band}, and was missed by up to {percent(worst)}."
    )


def stops(found: Curves) -> Html:
    rule = (
        f"A curve stops paying at the first count whose added GPUs each give less than {WORTH:g} of the frames per"
        f" second that one of its first GPUs gives. Counts are doubled up to {MAX_GPUS}. Each column is a network"
        " between nodes that is assumed; the last one takes no time at all."
    )
    parts: list[Displayed] = [paragraph(rule)]
    for one, those in found:
        shown = [curve for curve in those if curve.carried]
        if shown:
            label = f"Where curves stop paying {one.title}".strip()
            parts += [*_titled(found, one), beyond_tables.stops(shown, label=label)]
    return together(parts)


def figures(found: Curves) -> Html:
    """The first ``MAX_FIGURES`` curves; more would make a heavy page."""
    shown = [(one, curve) for one, curve in _carried(found) if curve.carried[0].points]
    parts: list[Displayed] = []
    if len(shown) > MAX_FIGURES:
        text = f"The first {MAX_FIGURES} of {len(shown)} curves are drawn; the table above has all of them."
        parts.append(paragraph(text))
    for number, (one, curve) in enumerate(shown[:MAX_FIGURES], start=1):
        table = beyond_tables.points(curve, label=f"Data of {curve.name}, {one.title}")
        series = one.campaign.series(curve.group.series)
        ends = [curve.carried[0], curve.carried[-2]]  # the last one takes no time at all
        parts.append(efficiency(series, curve.group, ends, number=number, data=table))
    return together(parts)


def missing(found: Curves) -> Html:
    """What has too little data, by name; curves that lack the same stand together."""
    lacking: dict[str, dict[str, list[str]]] = {}  # note -> title of a set -> names of its curves
    for one, those in found:
        title = f" ({one.title})" if _titled(found, one) else ""
        for curve in those:
            for note in beyond_tables.model_notes(curve):
                lacking.setdefault(note, {}).setdefault(title, []).append(curve.name)
    notes = [
        f"{'; '.join(f'{", ".join(names)}{title}' for title, names in of_sets.items())}: {note}."
        for note, of_sets in lacking.items()
    ]
    return bullets(notes) if notes else paragraph("Nothing is missing.")


def validation(found: Curves) -> Html:
    parts: list[Displayed] = []
    for one, those in found:
        several = [curve for curve in those if len(curve.group.measured) > 1]
        if several:
            label = f"Largest measured counts, predicted from the others {one.title}".strip()
            parts += [*_titled(found, one), beyond_tables.validation(several, label=label)]
    return together(parts) if parts else paragraph("No curve has a count that can be held out.")


def lags(found: Curves) -> Html:
    parts: list[Displayed] = []
    for one, those in found:
        shown = [curve for curve in those if curve.carried]
        if shown:
            label = f"How far the slowest rank lags behind the median rank {one.title}".strip()
            parts += [*_titled(found, one), beyond_tables.lags(shown, label=label)]
    return together(parts) if parts else paragraph("No curve has ranks whose lag is known.")


def links(version: Version) -> Html:
    """The assumed links of a node beside the bus bandwidth that env_check measured, and what is missing."""
    table = beyond_tables.links(_checks(version), read_interconnects())
    if table is None:
        return paragraph(
            "No report of env_check in this version has a bus bandwidth, so nothing measured stands beside the assumed"
            " links."
        )
    text = (
        "Large messages do not reach a line rate, so a prediction with a large gradient is too fast by as much. What"
        " was measured while others ran on the same host is left out. Not stored, so missing here: messages of a"
        " gradient's size, more GPUs of one node, any network between nodes."
    )
    return together([table, paragraph(text)])


def assumptions() -> Html:
    found = read_interconnects()
    sources = bullets(
        together(
            [
                named_source(source),
                paragraph(f"{source.name}: {source.author}, {source.date}; read {source.read}. {source.terms}"),
            ]
        )
        for source in found.source
    )
    text = (
        f"Every node is assumed to have {found.node.gpus} GPUs. A hop takes what stands first; in brackets are the ends"
        " of the band."
    )
    return together([paragraph(text), beyond_tables.assumptions(found), sources])


def _carried(found: Curves) -> Iterator[tuple[ResultSet, Curve]]:
    return ((one, curve) for one, those in found for curve in those if curve.carried)


def _titled(found: Curves, one: ResultSet) -> list[Displayed]:
    return [heading(one.title)] if len(found) > 1 or one.contributor else []


def _checks(version: Version) -> Iterator[tuple[str, CheckResult]]:
    """Of the reports beside the results, and of the machines in the records, each once.

    Not where other sets ran at that time: what they had of a link is missing from what was measured of it.
    """
    for report in version.env_checks:
        yield from ((report.name, check) for check in report.checks)
    for one in version.sets:
        known = version.beside_others[one.name]
        pairs = zip(one.campaign.results, known, strict=True)
        records = [pair for ours, all_of_it in pairs for pair in zip(ours.rounds, all_of_it.rounds, strict=True)]
        alone = [record for record, with_others in records if with_others is record]  # as its own campaign saw it
        for checks in dict.fromkeys(record.environment.checks for record in alone):
            yield from ((one.title or "this campaign", check) for check in checks)
