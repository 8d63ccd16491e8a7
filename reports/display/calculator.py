"""Hours, GPU-hours and cost of a number of frames on every measured number of GPUs, beside the time to a reward. Pure.

The page has the figures of each training as data. ``assets/calculator.js`` computes with them what a reader asks for;
without scripts there is a hint where the figures are.
"""

import html
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from reports.display.html import Html
from reports.figures.lines import Line
from suite.files.wording import counted

HEADINGS: Final = ("GPUs", "Hours for these frames", "GPU-hours", "Cost", "Seconds to the reward")
WITHOUT_SCRIPTS: Final = "Hours are frames / frames per second / 3,600: see Explore."


def calculator(lines: Sequence[tuple[str, Line]]) -> Html:
    """Return the calculator of these lines, each with the name of its task; there has to be one."""
    trainings = html.escape(json.dumps([_training(task, line) for task, line in lines], separators=(",", ":")))
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
            '<div class="frames"><label for="calculator-price">Price of a GPU-hour</label>'
            '<input id="calculator-price" type="number" min="0" step="any" value="1"></div></form>'
            '<div class="scroll" tabindex="0" role="region" aria-label="Hours, cost, and seconds to a reward" hidden>'
            f'<table><thead><tr>{heads}</tr></thead><tbody></tbody></table></div><p class="fine"></p></section>'
        ),
        text=WITHOUT_SCRIPTS,
    )


def _training(task: str, line: Line) -> Mapping[str, Any]:
    rows = [(row, line.figure(row, "frames_per_s"), line.figure(row, "time_to_reward_s")) for row in line.rows]
    return {
        "task": task,
        "training": line.label,
        "rows": [
            [row["gpus"], fps["value"], fps["low"], fps["high"], time["value"] if time else None]
            for row, fps, time in rows
            if fps
        ],
        "said": f"Measured on {line.where}, with settings as shipped, without start-up. {_reward(line)}".strip(),
    }


def _reward(line: Line) -> str:
    reward, seeds = line.figure(line.base, "reward_mean_to_reach"), line.seeds
    if reward is None or seeds is None:
        return ""
    seeds_in_words = counted(int(seeds["value"]), "seed")
    return f"The reward is {reward['value']:.3g} ({seeds_in_words}); n/a: a run ended before it had it, or none ran."
