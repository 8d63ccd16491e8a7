"""What is predicted beyond the measured counts, as tables; every predicted value is called so. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from reports.beyond import BOUNDS, MAX_GPUS, Carried, PredictedPoint, Stop
from reports.collectives import all_reduce_s
from reports.curves_beyond import Curve
from reports.interconnects import Interconnects, Latency, Network, Node
from reports.iteration_model import Model, NotCarried
from reports.prediction import HeldOut, hold_out
from reports.scaling_groups import point_efficiency
from reports.scaling_laws import Law
from reports.stragglers import Lags
from reports.tables import MISSING, Html, count, html_table, paragraph, percent, together
from reports.verdict_table import LAW_NAMES
from suite.schema.record import CheckResult

LAWS: Final[tuple[Law, ...]] = ("amdahl", "gustafson", "usl")
_BUS: Final = re.compile(r"over (\d+) GPU\(s\), bus bandwidth ([\d.]+) GB/s at (\d+) MiB")


def stops(curves: Sequence[Curve], *, label: str) -> Html:
    """One row for each curve, one column for each network; every curve has been carried."""
    networks = [one.network for one in curves[0].carried]
    return html_table(
        ["Curve", "Measured up to", *networks, "Predicted efficiency at the last count"],
        (
            [
                curve.name,
                _measured_up_to(curve),
                *(_stops_at(one, curve) for one in curve.carried),
                _last_efficiency(curve),
            ]
            for curve in curves
        ),
        label=label,
        text_headings=networks,
    )


def points(curve: Curve, *, label: str) -> Html:
    """Every count of a curve: measured ones, then predicted ones over each network."""
    carried = [one for one in curve.carried if one.points]
    rows = [
        [str(point.world_size), "measured", *[percent(point_efficiency(curve.group, point).value)] * len(carried)]
        for point in curve.group.measured
    ]
    rows += [
        [str(same[0].world_size), "predicted", *map(_efficiency, same)]
        for same in zip(*(one.points for one in carried), strict=True)
    ]
    return html_table(["GPUs", "What", *(one.network for one in carried)], rows, label=label, num_text_columns=2)


def validation(curves: Iterable[Curve], *, label: str) -> Html:
    """The largest measured count from the others, by this model and by each law."""
    found = [(curve, {law: _law_error(curve, law) for law in LAWS}) for curve in curves]
    fitted = [law for law in LAWS if any(errors[law] != MISSING for _, errors in found)]
    headings = ["Curve", "Predicted GPUs", "Fitted to", "Measured FPS", "Predicted FPS (band)", "Off by", "In band"]
    table = html_table(
        [*headings, *(f"{LAW_NAMES[law]} off by" for law in fitted)],
        ([*_validation_row(curve), *(errors[law] for law in fitted)] for curve, errors in found),
        label=label,
        text_headings=["Predicted GPUs", "Predicted FPS (band)"],  # or why none was; so all columns fit on a desk
    )
    others = ", ".join(LAW_NAMES[law] for law in LAWS if law not in fitted)
    said = paragraph(f"Fitted to none of these curves without its largest count: {others}.")
    return together([table, said] if others else [table])


def lags(curves: Iterable[Curve], *, label: str) -> Html:
    """What the slowest rank lags behind the median one: measured, and drawn from the same measurements."""
    return html_table(
        ["Curve", "GPUs", "Measured", "Drawn for as many", f"Predicted for {MAX_GPUS} (band)"],
        (_lag_row(curve.name, curve.model.lags) for curve in curves if isinstance(curve.model, Model)),
        label=label,
    )


def links(checks: Iterable[tuple[str, CheckResult]], interconnects: Interconnects) -> Html | None:
    """The assumed links of one node beside what env_check measured, by its name; None where nothing was measured."""
    rows = [row for name, check in checks for row in _link_row(name, check, interconnects)]
    if not rows:
        return None
    headings = ["env_check", "GPUs", "Message", "Measured bus bandwidth", "Assumed line rate", "Assumed time off by"]
    return html_table(headings, rows, label="Assumed links beside measured ones")


def assumptions(interconnects: Interconnects) -> Html:
    return html_table(
        ["Assumed link", "Line rate, one direction", "Hop of a ring in µs", "Hop of a tree in µs", "Sources"],
        [_assumed_row(interconnects.node), *map(_assumed_row, interconnects.network)],
        label="Assumed links",
        num_text_columns=5,
    )


def _measured_up_to(curve: Curve) -> str:
    most = curve.group.measured[-1].world_size
    return f"{most}, not checked" if isinstance(curve.held_out, NotCarried) else str(most)


def _stops_at(one: Carried, curve: Curve) -> str:
    """``4 (measured)``, ``64 (predicted)``, with the ends of the band where they differ."""
    expected = one.stops["expected"]
    if expected is not None and not expected.is_prediction:
        return f"{expected.world_size} (measured)"
    last = one.points[-1].world_size if one.points else curve.group.measured[-1].world_size
    ends = [_end(one.stops[bound], last) for bound in ("high", "low")]
    band = "" if set(ends) == {_end(expected, last)} else f"; band: {ends[0]} to {ends[1]}"
    return f"{_end(expected, last)} (predicted{band})"


def _end(stop: Stop | None, last: int) -> str:
    return f"over {last}" if stop is None else str(stop.world_size)


def _last_efficiency(curve: Curve) -> str:
    """Over the slowest and the quickest network, at the largest count that can be."""
    last = [one.points[-1] for one in curve.carried if one.points]
    if not last:
        return MISSING
    values = [100 * point.efficiency for point in last]
    return f"{min(values):.1f} to {max(values):.1f} % at {last[0].world_size}"


def _efficiency(point: PredictedPoint) -> str:
    return f"{percent(point.efficiency)} ({100 * point.efficiency_low:.1f} to {100 * point.efficiency_high:.1f})"


def _validation_row(curve: Curve) -> list[str]:
    found = curve.held_out
    if isinstance(found, NotCarried):
        return [curve.name, f"none: {found.reason}", *[MISSING] * 5]
    low, high = found.predicted_fps["high"], found.predicted_fps["low"]
    return [
        curve.name,
        str(found.world_size),
        ", ".join(map(str, found.fitted_to)),
        count(found.measured_fps),
        f"{count(found.predicted_fps['expected'])} ({count(low)} to {count(high)})",
        f"{100 * found.relative_error:+.1f} %",
        "yes" if found.is_in_band else "no",
    ]


def _lag_row(name: str, found: Lags) -> list[str]:
    low, expected, high = (percent(found.largest_of(MAX_GPUS, bound)) for bound in BOUNDS)
    return [
        name,
        str(found.world_size),
        percent(found.slowest),
        percent(found.largest_of(found.world_size)),
        f"{expected} ({low} to {high})",
    ]


def _law_error(curve: Curve, law: Law) -> str:
    found = hold_out(law, curve.group)
    return f"{100 * found.relative_error:+.1f} %" if isinstance(found, HeldOut) else MISSING


def _link_row(name: str, check: CheckResult, interconnects: Interconnects) -> Iterator[list[str]]:
    found = _BUS.search(check.found)
    if found is None:
        return
    gpus, bandwidth_gb_s, message_bytes = int(found[1]), float(found[2]), int(found[3]) * 2**20
    assumed_s = all_reduce_s(gpus, message_bytes, interconnects.links(interconnects.network[0], "expected"))
    measured_s = 2 * (gpus - 1) / gpus * message_bytes / (bandwidth_gb_s * 1e9)
    yield [
        name,
        str(gpus),
        f"{found[3]} MiB",
        f"{bandwidth_gb_s:.0f} GB/s",
        f"{interconnects.node.gigabytes_per_s:.0f} GB/s",
        f"{100 * (assumed_s / measured_s - 1):+.0f} %",
    ]


def _assumed_row(link: Node | Network) -> list[str]:
    rate = (
        f"{link.gigabytes_per_s:g} GB/s a GPU"
        if isinstance(link, Node)
        else f"{link.ports_per_node} x {link.gigabits_per_s:g} Gb/s a node"
    )
    return [link.name, rate, _hops(link.ring_us), _hops(link.tree_us), ", ".join(link.sources)]


def _hops(latency: Latency) -> str:
    return f"{latency.ll128:g} ({latency.ll:g} to {latency.simple:g})"


def model_notes(curve: Curve) -> Sequence[str]:
    """What a curve lacks, in sentences."""
    if not isinstance(curve.model, Model):
        return [f"not carried further, because {curve.model.reason}"]
    notes = []
    ended = curve.carried[0].ended_because
    if ended is not None:
        notes.append(f"its work cannot be cut further: {ended}")
    if curve.model.gradient_bytes is None:
        notes.append(
            "the size of its gradient is not stored (later rounds store it), so all-reduce has its hops only, and the"
            " efficiency is the most that can be"
        )
    if isinstance(curve.held_out, NotCarried):
        notes.append(f"the model could not be checked, because {curve.held_out.reason}")
    if not curve.model.has_noise:
        notes.append("too few rounds for an interval, so the band leaves out how rounds differ")
    return notes
