"""Hours and cost of a number of frames on every measured number of GPUs, and time and cost of a reward. Pure.

The page has the figures of each training as data. ``assets/calculator.js`` computes with them what a reader asks for;
without scripts there is a hint where the figures are.
"""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reports.display.html import Html
from reports.figures.lines import Figure, Line
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL

HEADINGS: Final = ("GPUs", "Hours for the frames", "Cost of the frames", "Seconds to the reward", "Cost of the reward")
WITHOUT_SCRIPTS: Final = "Hours are frames / frames per second / 3,600: see Explore."


def calculator(lines: Sequence[tuple[str, Line]], rewards: Sequence[tuple[str, Line]]) -> Html:
    """Return the calculator of these lines, each with the name of its task; there has to be one.

    ``rewards``: the lines that say most of rewards. Those of a machine may be of another than those of frames.
    """
    known = {(task, line.label): line for task, line in rewards}
    rows = [_training(task, line, known.get((task, line.label))) for task, line in lines]
    rows.sort(key=lambda training: training["rows"][0][4] is None)  # first what says when the reward comes
    trainings = html.escape(json.dumps(rows, separators=(",", ":")))
    heads = "".join(f'<th scope="col">{name}</th>' for name in HEADINGS)
    return Html(
        markup=(
            f'<section class="calculator" aria-labelledby="calculator-title" data-trainings="{trainings}">'
            '<h2 class="calculator-title" id="calculator-title">Hours, cost, and time to a reward</h2>'
            f'<p class="no-script">{WITHOUT_SCRIPTS}</p><form hidden>'
            '<fieldset data-name="task"><legend>Task</legend></fieldset>'
            '<fieldset data-name="training"><legend>Training</legend></fieldset>'
            '<div class="frames"><label for="calculator-frames">Frames</label>'
            '<input id="calculator-frames" type="range" min="0" max="6" step="1" value="4"><output></output></div>'
            '<div class="frames"><label for="calculator-price">Price of a GPU-hour (one: cost in GPU-hours)</label>'
            '<input id="calculator-price" type="number" min="0" step="any" value="1"></div></form>'
            '<div class="scroll" tabindex="0" role="region" aria-label="Hours, cost, and seconds to a reward" hidden>'
            f'<table><thead><tr>{heads}</tr></thead><tbody></tbody></table></div><p class="fine"></p></section>'
        ),
        text=WITHOUT_SCRIPTS,
    )


def _training(task: str, line: Line, of_rewards: Line | None) -> Mapping[str, Any]:
    times: dict[int, Figure | None] = {}
    said = f"Measured on {line.where}, with settings as shipped, without start-up."
    if of_rewards and (seeds := of_rewards.seeds) and seeds["value"] >= MIN_ROUNDS_FOR_INTERVAL:
        times = {row["gpus"]: of_rewards.figure(row, "time_to_reward_s") for row in of_rewards.rows}
        if reward := of_rewards.figure(of_rewards.base, "reward_mean_to_reach"):
            said += f" The reward is {reward['value']:.3g} ({seeds['value']:.0f} seeds; speed: {of_rewards.where})."
    rows = [
        [row["gpus"], *_ends(fps), *_ends(times.get(row["gpus"]))]
        for row in line.rows
        if (fps := line.figure(row, "frames_per_s"))
    ]
    if None in (row[4] for row in rows):
        said += f" n/a: not measured, by fewer than {MIN_ROUNDS_FOR_INTERVAL} seeds, or not every run had the reward."
    return {"task": task, "training": line.label, "rows": rows, "said": said}


def _ends(figure: Figure | None) -> tuple[float | None, ...]:
    return (figure["value"], figure["low"], figure["high"]) if figure else (None, None, None)
