"""Tables of what cases took of their machine: energy, and how its host's cores were. Units in the headings. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from reports.analysis.rows import CaseRow
from reports.analysis.time_split import Inside, Values
from reports.display.html import MISSING, Html, html_table, paragraph, seconds, together
from reports.sets.version import ResultSet
from suite.statistics.core_speed import SLOWED

RULE: Final = (
    "After each marked iteration a fixed piece of Python's work is timed on the core that launches kernels. The core"
    f" counts as slowed where this takes over {SLOWED:g} times as long as at best."
)


def slowed_cores_table(sets: Sequence[ResultSet]) -> Html | None:
    """Show the sets whose cores were shared or slowed; None without any."""
    found = [(one.title or "This campaign", said) for one in sets if (said := one.campaign.slowed_cores)]
    if not found:
        return None
    table = html_table(
        ["Set", "Marked iterations", "After a slowed core", "At best", "The next iteration"],
        [
            [title, str(said.looks), str(said.slowed), said.fastest_in_words, said.cost_in_words or MISSING]
            for title, said in found
        ],
        label="Slowed cores",
    )
    return together([paragraph(RULE), table])


NOT_MEASURED: Final = "not measured"
type Columns = Mapping[str, Callable[[Inside], str]]  # by heading


def energy(rows: Sequence[CaseRow], found: Mapping[str, Inside]) -> Html:
    return _table(rows, found, _ENERGY, label="Energy")


def host(rows: Sequence[CaseRow], found: Mapping[str, Inside], *, label: str) -> Html:
    """How fast the host's cores were, and who else used them."""
    return _table(rows, found, _HOST, label=label)


def _table(rows: Sequence[CaseRow], found: Mapping[str, Inside], columns: Columns, *, label: str) -> Html:
    """A column that no case has and a case that has no column are named below the table."""
    texts = {row.case_id: {name: show(found[row.case_id]) for name, show in columns.items()} for row in rows}
    known = [name for name in columns if any(text[name] != NOT_MEASURED for text in texts.values())]
    without = [name for name, text in texts.items() if set(text.values()) == {NOT_MEASURED}]
    table = html_table(
        ["Case", "Ranks", *known],
        (
            [row.case_id, str(row.world_size), *(texts[row.case_id][name] for name in known)]
            for row in rows
            if row.case_id not in without
        ),
        label=label,
    )
    missing = ", ".join(name for name in columns if name not in known)
    notes = [f"Measured in none of these cases: {missing}."] if missing else []
    if known and without:
        notes.append(f"Nothing of this was measured of {', '.join(without)}.")
    return together([*([table] if known else []), *map(paragraph, notes)])


def _median(values: Values | None, form: str) -> str:
    return NOT_MEASURED if values is None else form.format(values.median)


def _with_range(values: Values | None, form: str) -> str:
    """``8.2 (8.1 to 8.4)``; the median alone where all rounds are written alike."""
    if values is None:
        return NOT_MEASURED
    median, low, high = (form.format(value) for value in (values.median, values.low, values.high))
    return median if low == high else f"{median} ({low} to {high})"


def _slowed(found: Inside) -> str:
    speed = found.core_speed
    return NOT_MEASURED if speed is None else f"{speed.slowed} of {speed.looks}"


def _unslowed(found: Inside) -> str:
    speed = found.core_speed
    return NOT_MEASURED if speed is None or speed.unslowed_iteration_s is None else seconds(speed.unslowed_iteration_s)


_ENERGY: Final[Columns] = {
    "GPU utilisation": lambda found: _median(found.gpu_utilisation_percent, "{:.0f} %"),
    "Power of all GPUs in W": lambda found: _median(found.power_w, "{:,.0f}"),
    "Energy for a million frames in J": lambda found: _with_range(found.joules_per_million_frames, "{:,.0f}"),
    "Throttled time": lambda found: _median(found.throttled_share, "{:.1%}"),
}
_HOST: Final[Columns] = {
    "Core probe in µs": lambda found: _median(found.core_probe_us, "{:.0f}"),
    "Looks that found a slowed core": _slowed,
    "Iteration after a core that was not slowed in s": _unslowed,
    "CPU time taken by a hypervisor": lambda found: _median(found.stolen_share, "{:.1%}"),
    "CPU time of other processes": lambda found: _median(found.others_share, "{:.1%}"),
    "Sampler's share of a core": lambda found: _median(found.sampler_core_share, "{:.1%}"),
}
