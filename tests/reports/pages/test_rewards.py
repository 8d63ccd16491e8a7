"""What is said of a reward on more GPUs: what to do, when it comes, how sure that is; of figures that tests give."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reports.display.html import paragraph
from reports.figures.declarations import MARKS
from reports.figures.lines import Figure, Line
from reports.pages.home import _for_a_reward
from reports.pages.rewards import by_marks, time_to_reward, times


@dataclass(frozen=True)
class Known(Line):
    """A line of 1, 2 and 4 GPUs with figures that a test gives."""

    figures: Mapping[tuple[int, str], Figure] = field(default_factory=dict)

    def figure(self, row: Mapping[str, Any], name: str) -> Figure | None:
        return self.figures.get((row["gpus"], name))


def status(_: float, low: float | None = None, high: float = math.inf) -> str:
    return "too few runs" if low is None else "within noise" if low < 1 <= high else "clear"


def line_of(**known: Mapping[int, tuple[float, ...]]) -> Known:
    """``name``: of each number of GPUs a value, and its interval."""
    rows = tuple({"gpus": gpus} for gpus in (1, 2, 4))
    own = {
        (gpus, name): dict(zip(("value", "low", "high"), (*values, None, None), strict=False))
        | {"id": f"x/{name}", "runs": 4, "status": status(*values)}
        for name, by_gpus in known.items()
        for gpus, values in by_gpus.items()
    }
    return Known(None, "", "", rows, "", figures=own)  # type: ignore[arg-type]  # it has no version


@pytest.mark.parametrize(
    ("of_two", "of_four", "advice"),
    [
        ((1.6, 0.9, 2.8), (2.2, 0.95, 5.0), "open"),
        ((1.3, 1.05, 1.6), (0.5, 0.4, 0.6), "use 2 GPUs"),
        ((1.3, 1.05, 1.6), (2.0, 1.5, 2.5), "use 4 GPUs"),
        ((0.8, 0.7, 0.9), (2.0,), "open"),
        ((0.8, 0.7, 0.9), (0.6, 0.5, 0.7), "use one GPU"),
        ((0.8, 0.7, 0.9), None, "open"),  # not every run on four had it
        ((1.0, 0.8, 1.4), (1.1, 0.9, 2.4), "use one GPU"),  # less than half of what would be ideal
        ((1.0, 0.8, 1.4), (1.1, 0.9, 2.6), "open"),
        ((1.0, 0.8, 1.6), (1.1, 0.9, 1.4), "open"),
        (
            (1.0, 0.8, 1.4),
            (0.8, 0.7, 0.9),
            "use one GPU: 4 GPUs bring the reward at best 0.80 (0.70 to 0.90) times as soon",
        ),
    ],
)
def test_what_to_do_for_a_reward_follows_from_what_is_clear(
    of_two: tuple[float, ...], of_four: tuple[float, ...] | None, advice: str
) -> None:
    known = {2: of_two} | ({4: of_four} if of_four else {})
    assert paragraph(_for_a_reward(line_of(**{f"sooner{end}": known for end in MARKS}))).text.startswith(advice)


@pytest.mark.parametrize(
    ("at_97", "advice"),
    [((1.2, 1.0, 1.4), "use one GPU: 2 GPUs bring the reward at best 1.20 (1.00 to 1.40)"), ((1.3, 1.1, 1.6), "open")],
)
def test_the_mark_that_is_kindest_to_more_gpus_says_what_to_do(at_97: tuple[float, ...], advice: str) -> None:
    known = {f"sooner{end}": {2: at_97 if end == "_97" else (0.8, 0.7, 0.9)} for end in MARKS}
    line = line_of(**known)
    line = replace(line, rows=line.rows[:2])
    assert paragraph(_for_a_reward(line)).text.startswith(advice)


SOONER, LATER, OPEN = (1.6, 1.1, 2.8), (0.6, 0.5, 0.9), (1.6, 0.9, 2.8)


@pytest.mark.parametrize(
    ("at_60", "at_97", "words"),
    [
        (SOONER, SOONER, "clear"),
        (SOONER, LATER, "depends on the mark: sooner at 60, 70, 80, 90 and 95 %, later at 97 % of the rise"),
        (SOONER, OPEN, "depends on the mark: sooner at 60, 70, 80, 90 and 95 %, within noise at 97 % of the rise"),
        (
            SOONER,
            None,
            "depends on the mark: sooner at 60, 70, 80, 90 and 95 %, 1 of 4 runs had it at 97 % of the rise",
        ),
        (LATER, LATER, "clear"),
        (OPEN, OPEN, "within noise"),
        ((1.6,), (1.6,), "too few runs"),
        ((1.6,), None, "too few runs at 60, 70, 80, 90 and 95 %, 1 of 4 runs had it at 97 % of the rise"),
    ],
)
def test_how_much_sooner_is_clear_if_all_marks_agree(
    at_60: tuple[float, ...], at_97: tuple[float, ...] | None, words: str
) -> None:
    known = {f"sooner{end}": {2: at_60} for end in MARKS if end != "_97"} | {"reached_97": {2: (1.0,)}}
    line = line_of(**known, **({"sooner_97": {2: at_97}} if at_97 else {}))
    assert paragraph(by_marks(lambda name: line.figure({"gpus": 2}, name))).text == words
    is_open = _for_a_reward(line).startswith("open")
    assert is_open == (words != "clear" or at_60 == LATER)  # on 4 GPUs nothing is known


@pytest.mark.parametrize(
    ("own", "words"), [(SOONER, "surely sooner"), (LATER, "surely later"), (OPEN, "within noise"), ((1.6,), None)]
)
def test_a_task_says_how_much_sooner_its_reward_comes_with_an_interval(
    own: tuple[float, ...], words: str | None
) -> None:
    known = {"reward_mean_to_reach": {1: (9.0,)}, "time_to_reward_s": {1: (5.0,)}, "seeds": {1: (3.0,), 2: (3.0,)}}
    line = line_of(**known, **{f"sooner{end}": {2: own} for end in MARKS})
    text = paragraph(time_to_reward(line)).text
    assert text.count("times as soon on 2 GPUs") == (words is not None)
    assert text.endswith(f"({words})." if words else "(3 seeds).")


def test_marks_at_which_as_many_runs_have_the_reward_are_said_together() -> None:
    missing = {f"reached_{mark}": {2: (1.0,)} for mark in (95, 97)}
    line = line_of(**{f"sooner{end}": {2: SOONER} for end in MARKS if end not in ("_95", "_97")}, **missing)
    words = paragraph(by_marks(lambda name: line.figure({"gpus": 2}, name))).text
    assert words.endswith("sooner at 60, 70, 80 and 90 %, 1 of 4 runs had it at 95 and 97 % of the rise")


def test_only_a_number_of_gpus_that_ran_is_said_not_to_have_the_reward() -> None:
    time = {1: (10.0,), 2: (12.0,)}
    not_reached = line_of(time_to_reward_s=time, reached={1: (3.0,), 2: (3.0,), 4: (1.0,)})
    assert "on 4 not every run had it" in paragraph(times(not_reached)).text
    nothing_learned = line_of(time_to_reward_s=time, reached={1: (3.0,), 2: (3.0,)})
    assert "not every run" not in paragraph(times(nothing_learned)).text
