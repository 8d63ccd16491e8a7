"""What a training costs: every measured number of GPUs, for as many frames as the reader asks for. Pure.

Without scripts it is a table for ``FRAMES`` frames. ``assets/calculator.js`` shows the rows of one task, library,
number of environments and GPU, and multiplies what stands in ``data-per-frame``.
"""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Final

from reports.analysis.scaling.answer import advice
from reports.analysis.scaling.lines import Line, Point
from reports.display.html import Html, seconds

FRAMES: Final = 10**9
FRAMES_SAID: Final = "1 billion"
SECONDS_PER_HOUR: Final = 3600
KEYS: Final = ("Task", "Library", "Environments", "GPU")

type Key = tuple[str, str, str, str]


def calculator(lines: Sequence[Line]) -> Html:
    """Return the calculator of these lines; there has to be one."""
    by_key: dict[Key, list[Line]] = {}
    for line in sorted(lines, key=lambda line: (line.task, -line.points[-1].gpus)):
        by_key.setdefault(line.key, []).append(line)
    rows = "".join(_row(key, gpus, found) for key, found in by_key.items() for gpus in _counts(found))
    heads = "".join(f'<th scope="col" class="key">{name}</th>' for name in KEYS)
    said = "".join(
        f'<p class="advice" data-key="{_data(key)}"><span class="key">{html.escape(", ".join(key))}: </span>'
        f"{html.escape(advice(found))} {_machines(found)}</p>"
        for key, found in by_key.items()
    )
    markup = (
        '<section class="calculator" aria-labelledby="calculator-title">'
        '<h2 id="calculator-title">What would your training cost?</h2>'
        f"<form hidden>{''.join(map(_field, KEYS))}"
        '<div class="frames"><label for="calculator-frames">Frames</label>'
        '<input id="calculator-frames" type="range" min="0" max="4" step="1" value="2">'
        f"<output>{FRAMES_SAID}</output></div></form>"
        f'<p class="no-script">For {FRAMES_SAID} frames.</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Hours and GPU-hours">'
        f'<table><thead><tr>{heads}<th scope="col">GPUs</th><th scope="col">Hours</th>'
        f'<th scope="col">GPU-hours</th><th scope="col">Runs</th></tr></thead><tbody>{rows}</tbody></table></div>'
        f'{said}<p class="fine">Settings as Isaac Lab ships them, without start-up. Frames are not learning: see '
        '<a href="choosing.html#time-to-a-reward">time to a reward</a>.</p></section>'
    )
    text = "\n".join(f"{', '.join(key)}: {advice(found)}" for key, found in by_key.items())
    return Html(markup=markup, text=text)


def _counts(lines: Sequence[Line]) -> list[int]:
    return sorted({point.gpus for line in lines for point in line.points})


def _field(name: str) -> str:
    return f'<fieldset data-name="{name.lower()}"><legend>{name}</legend></fieldset>'


def _row(key: Key, gpus: int, lines: Sequence[Line]) -> str:
    found = [point for line in lines if (point := line.at(gpus)) is not None]
    keys = "".join(f'<td class="key">{html.escape(part)}</td>' for part in key)
    runs = " + ".join(str(point.runs) for point in found)
    return (
        f'<tr data-key="{_data(key)}">{keys}<th scope="row">{gpus}</th><td>{_hours(found)}</td>'
        f"<td>{_hours(found, times=gpus)}</td><td>{runs}</td></tr>"
    )


def _hours(points: Sequence[Point], *, times: int = 1) -> str:
    """From the quickest to the slowest machine; of one machine its figure, with its interval if it has one."""
    per_frame = sorted(times / point.fps.value / SECONDS_PER_HOUR for point in points)
    if len(points) > 1:
        low, high = _figure(per_frame[0]), _figure(per_frame[-1])
        return low if _said(per_frame[0]) == _said(per_frame[-1]) else f"{low} to {high}"
    interval = points[0].fps.interval
    if interval is None:
        return _figure(per_frame[0])
    low, high = (_figure(times / fps / SECONDS_PER_HOUR) for fps in reversed(interval))
    return f"{_figure(per_frame[0])} ({low} to {high})"


def _figure(per_frame: float) -> str:
    return f'<span data-per-frame="{per_frame:.6g}">{_said(per_frame)}</span>'


def _said(per_frame: float) -> str:
    return seconds(FRAMES * per_frame)


def _machines(lines: Sequence[Line]) -> str:
    machines = dict.fromkeys(line.machine for line in lines)
    if len(machines) == 1:
        return f"Measured on {html.escape(next(iter(machines)))}."
    return f"The range is over {len(machines)} machines: {html.escape('; '.join(machines))}."


def _data(key: Key) -> str:
    named: Mapping[str, str] = dict(zip((name.lower() for name in KEYS), key, strict=True))
    return html.escape(json.dumps(named))
