"""Hours and GPU-hours for a number of frames on every measured number of GPUs, beside the time to a reward. Pure.

Without scripts it is a table for ``FRAMES`` frames. ``assets/calculator.js`` shows the rows of one task, library,
number of environments and GPU, and multiplies what stands in ``data-per-frame``.
"""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Final

from reports.analysis.scaling.answer import advice
from reports.analysis.scaling.lines import Line, Point
from reports.analysis.time_to_reward import TimeToReward
from reports.display.html import Html, seconds
from suite.files.wording import counted, joined
from suite.statistics.intervals import ratio_of

FRAMES: Final = 10**8
FRAMES_SAID: Final = "100 million"
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
        f"{html.escape(advice(found))} {_machines(found)} {html.escape(_reward_answer(found))}</p>"
        for key, found in by_key.items()
    )
    markup = (
        '<section class="calculator" aria-labelledby="calculator-title">'
        '<h2 class="calculator-title" id="calculator-title">How long does a number of frames take?</h2>'
        f"<form hidden>{''.join(map(_field, KEYS))}"
        '<div class="frames"><label for="calculator-frames">Frames</label>'
        '<input id="calculator-frames" type="range" min="0" max="6" step="1" value="4">'
        f"<output>{FRAMES_SAID}</output></div>"
        '<div class="frames"><label for="calculator-price">Price of a GPU-hour</label>'
        '<input id="calculator-price" type="number" min="0" step="any" value="1"></div></form>'
        f'<p class="no-script">For {FRAMES_SAID} frames.</p>'
        '<div class="scroll" tabindex="0" role="region" aria-label="Hours for frames, and seconds to a reward">'
        f'<table><thead><tr>{heads}<th scope="col">GPUs</th><th scope="col">Hours for these frames</th>'
        '<th scope="col">GPU-hours</th><th scope="col" class="cost">Cost</th>'
        '<th scope="col">Seconds to a reward</th><th scope="col">Runs</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        f'{said}<p class="fine">Settings as Isaac Lab ships them, without start-up. The cost is GPU-hours times the'
        " price of one. A training needs other numbers of frames on more GPUs, so hours for frames are"
        " not hours to a reward.</p></section>"
    )
    text = "\n".join(
        f"{', '.join(key)}: {advice(found)} {_reward_answer(found)}".strip() for key, found in by_key.items()
    )
    return Html(markup=markup, text=text)


def _counts(lines: Sequence[Line]) -> list[int]:
    return sorted({point.gpus for line in lines for point in line.points})


def _field(name: str) -> str:
    return f'<fieldset data-name="{name.lower()}"><legend>{name}</legend></fieldset>'


def _row(key: Key, gpus: int, lines: Sequence[Line]) -> str:
    found = [point for line in lines if (point := line.at(gpus)) is not None]
    keys = "".join(f'<td class="key">{html.escape(part)}</td>' for part in key)
    runs = " + ".join(str(point.runs) for point in found)
    first = lines[0].at(gpus)
    reward_s = first.to_reward.time_s if first and first.to_reward else None
    return (
        f'<tr data-key="{_data(key)}">{keys}<th scope="row">{gpus}</th><td>{_hours(found)}</td>'
        f'<td>{_hours(found, times=gpus)}</td><td class="cost">{_hours(found, times=gpus)}</td>'
        f"<td>{seconds(reward_s)}</td><td>{runs}</td></tr>"
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


def _reward_answer(lines: Sequence[Line]) -> str:
    """When runs of the first line had a reward on each number of GPUs, and if that falls; empty if not known."""
    line, is_only = lines[0], len(lines) == 1
    known = [(point, found) for point in line.points if (found := point.to_reward) and found.time_s is not None]
    if len(known) < 2:  # noqa: PLR2004 - one alone says nothing of more GPUs
        return ""
    (one, first), (_, last) = known[0], known[-1]
    times = [f"{seconds(found.time_s)} s on {counted(point.gpus, 'GPU')}" for point, found in known]
    seeds = {one.case.seed_of(rank=0, round_index=number) for number in first.round_times_s}
    return (
        f"{'A' if is_only else 'On the first machine a'} reward of {first.reward:.3g} came after {joined(times)}"
        f" ({counted(len(seeds), 'seed')}), which {_falls(first, last)} with more GPUs."
    )


def _falls(first: TimeToReward, last: TimeToReward) -> str:
    times = [[time for time in each.round_times_s.values() if time is not None] for each in (first, last)]
    change = ratio_of(times[1], times[0])
    if change.value >= 1:
        return "does not fall"
    return "falls" if change.interval and change.interval[1] < 1 else "does not surely fall"


def _machines(lines: Sequence[Line]) -> str:
    machines = dict.fromkeys(line.machine for line in lines)
    if len(machines) == 1:
        return f"Measured on {html.escape(next(iter(machines)))}."
    return f"The range is over {len(machines)} machines: {html.escape('; '.join(machines))}."


def _data(key: Key) -> str:
    named: Mapping[str, str] = dict(zip((name.lower() for name in KEYS), key, strict=True))
    return html.escape(json.dumps(named))
