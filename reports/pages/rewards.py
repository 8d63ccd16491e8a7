"""What trainings learn: rewards over frames, and the time to a reward in words. Pure."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean, median
from typing import Any, Final

from reports.data.rewards import CONVERGED_SHARE, LEARNED_SUCCESS
from reports.data.words import environments_text
from reports.display.charts.drawing import Point
from reports.display.charts.speedup import PREDICTED
from reports.display.html import measured, runs_in
from reports.figures.compare import Row, processes_of
from reports.figures.declarations import MARKS, SPREAD
from reports.figures.lines import Figure, Line, estimate, figure
from reports.figures.tables import rows_by_id, runs_of
from reports.sets.machines import plain_name
from reports.sets.version import Version
from suite.files.wording import counted, joined
from suite.records.rewards import SMOOTHING_WINDOW
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL, product_of

MAX_POINTS: Final = 60  # of a curve; as many as a phone shows
DEPENDS: Final = "depends on the mark: "
REWARD: Final = (
    "The reward is the mean over an episode of full length, after 90 % of the rise that every run on the fewest GPUs"
    " has. Times are of iterations, without start-up, and of all seeds; how many times as soon a reward comes is of"
    " seeds that both have. A training has no time to a reward if under half of its episodes succeed at the end."
)
LEARNED: Final = (
    "how many frames it takes is measured with as many processes on one GPU, which do the same work; the time is these"
    " frames over the frames per second of the GPUs. They ran on"
)
AGREEMENT: Final = (
    "Rewards of processes on one GPU were compared with those of runs of the same seed on as many GPUs, over the"
    " iterations of these. Where they are most apart, mean of pairs of runs, it is by this part of the rise:"
)


def curve(version: Version, row: Row, label: str) -> Iterator[Point]:
    """Yield over million frames what the figure learned_reward, or else last_reward, is if runs end there."""
    runs = runs_of(version)
    learned = runs.learned(row) if figure(version, row, "seeds") else None
    own = runs.of(learned or row)
    by, window, reward_of = ("seed", own["reward_window"][0], fmean) if learned else ("run", SMOOTHING_WINDOW, median)
    last, by_seed = own["iterations"][0], [runs.rewards(rows).values() for rows in own.partition_by(by)]
    for end in reversed(range(last, window - 1, -math.ceil(last / MAX_POINTS))):
        known = []
        for every in by_seed:
            windows = ([reward for reward in rewards[end - window : end] if reward is not None] for rewards in every)
            if of_runs := [reward_of(rewards) for rewards in windows if len(rewards) == window]:
                known.append(fmean(of_runs))
        if known:
            yield Point(label=label, x=end * row["frames_per_iteration"] / 1e6, y=median(known))


def learned_at(line: Line, *rows: Row) -> set[str]:
    """The machines on which it was measured what these configurations learn; none if their own runs say that."""
    runs, own_rows = runs_of(line.version), [row for row in rows if line.figure(row, "seeds")]
    sets = {name for row in own_rows if (learned := runs.learned(row)) for name in runs.of(learned)["set"].unique()}
    return {plain_name(own.campaign.largest_place) for own in line.version.sets if own.name in sets}


def point(label: str, x: int, own: Mapping[str, Any], kind: str = "") -> Point:
    """A figure in a chart, hollow without an interval."""
    interval = estimate(own).interval
    return Point(label=label, x=x, y=own["value"], interval=interval, is_sure=interval is not None, kind=kind)


def time_to_reward(line: Line) -> str:
    """Say when a line's runs have the reward on each number of GPUs; empty where that is not known of two."""
    reward, success = (line.figure(line.base, name) for name in ("reward_mean_to_reach", "learned_success"))
    if reward is None and success and success["value"] < LEARNED_SUCCESS:
        after = counted((runs_of(line.version).learned(line.base) or line.base)["iterations"], "iteration")
        return f"{line.label}: no time to a reward, since {measured(success)} of the episodes succeed after {after}."
    if reward is None or not line.figure(line.base, "time_to_reward_s"):
        return ""
    compared = [
        f"{measured(own)} times as soon on {row['gpus']} GPUs ({own['status'].replace('clear', clear)})"
        for row in line.rows[1:]
        if (own := sooner_on(line, row)) and own["low"] is not None
        for clear in ["surely sooner" if own["value"] > 1 else "surely later"]
    ]
    more = f" The reward comes {', '.join(compared)}." if compared else ""
    return f"{line.label}: a reward of {measured(reward)} after {times(line)} ({seeds(line)}).{more}"


def seeds(line: Line, *others: Figure | None) -> str:
    """``1 seed: too few to say``: of the number of GPUs that has fewest, and of ``others``."""
    fewest = min((own for own in (line.seeds, *others) if own), key=lambda own: int(own["value"]), default=None)
    number = 0 if fewest is None else fewest["value"]
    text = measured(fewest, lambda value: counted(int(value), "seed"))
    return text if number >= MIN_ROUNDS_FOR_INTERVAL else f"{text}: too few to say"


def sooner(line: Line) -> Mapping[int, tuple[Figure | None, str]]:
    """How many times as soon the reward comes, if every run had it, on more GPUs, or on one with their environments."""
    known, base, is_over_gpus = {}, line.base, line.rows[-1]["gpus"] > line.base["gpus"]
    for row in line.rows[1:]:
        gpus, rest = (row["gpus"], 0) if is_over_gpus else divmod(row["environments"], base["environments"])
        own = sooner_on(line, row)
        if not rest and (own or (row in line.learned and _is_missed(line.figure(row, "reached")))):
            known[gpus] = own, ""
    for gpus in map(processes_of, runs_of(line.version).learned_on_more(line.rows[-1]) if is_over_gpus else ()):
        own = line.figure(base, f"{gpus}/sooner_predicted")
        if own or _is_missed(line.figure(base, f"{gpus}/reached")):
            known[gpus] = own, PREDICTED
    return known


def agreement(line: Line) -> str:
    """How far rewards on one GPU are from those on as many as they stand for; empty if no seed ran both ways."""
    apart = []
    for row in line.rows:
        if own := line.figure(row, "differs_on_one_gpu"):
            again = line.figure(row, "differs_again")
            runs = f" (two runs on these: {measured(again)})" if again else ""
            apart.append(f"{measured(own)} in {row['iterations']} iterations on {row['gpus']} GPUs{runs}")
    return f"{line.label}: {joined(apart)}" if apart else ""


def _is_missed(reached: Figure | None) -> bool:
    """Whether a run ended before it had the reward, which there is."""
    return bool(reached and reached["value"] < reached["runs"])


def filled_or_added(filled: Line, added: Line) -> str:
    """Say whether one GPU with the environments of several brings the reward sooner; empty if they are no rivals."""
    one, several = sooner(filled), sooner(added)
    both = [(*own, *several[gpus], gpus) for gpus, own in one.items() if gpus in several]
    bases = {(own.base["gpu_model"], (own.figure(own.base, "seeds") or {}).get("over")) for own in (filled, added)}
    if len(bases) > 1 or added.base["scaling"] != "weak" or not both:
        return ""
    # The most GPUs of which both are known, and measured.
    ratio, _, rival, kind, gpus = max(both, key=lambda item: (bool(item[0] and item[2]), not item[3], item[4]))
    size, number = filled.base["environments"], counted(gpus, "GPU")
    comes = [f"{measured(own)} times as soon" if own else "not in every run" for own in (ratio, rival)]
    pair = ((ratio, filled), (rival, added))
    answers = [
        _answer(*(own and rows_by_id(line.version).get(f"{own['id']}{end}") for own, line in pair)) for end in MARKS
    ]
    status = _of_marks([(answer, answer) for answer in answers])
    than = f"than {f'is predicted of {number}' if kind else number}"
    if status == "clear":
        claim = f"Filling one GPU brings the reward {answers[0]} {than}"
    else:
        is_open = "" if status.startswith(DEPENDS) else "is "
        claim = f"Whether filling one GPU brings the reward sooner {than} {is_open}{status}"
    return (
        f"{claim}. Against one with {environments_text(size)} the reward comes {comes[0]} with"
        f" {environments_text(gpus * size)}, and {comes[1]} on {number} ({filled.label};"
        f" {seeds(filled, added.seeds, added.figure(added.base, f'{gpus}/seeds'))}).{_at_the_end(filled, added, gpus)}"
    )


def _at_the_end(filled: Line, added: Line, gpus: int) -> str:
    """The rewards at the end of both, with the least and the most of all seeds; empty if one is not known."""
    (full,) = (row for row in filled.rows if row["environments"] == gpus * filled.base["environments"])
    ran = {row["gpus"]: row for row in added.rows}
    learned = {processes_of(row): row for row in runs_of(added.version).learned_on_more(added.rows[-1])} | ran
    places = [
        (filled, full, full, ""),
        (added, ran.get(gpus, added.base), learned[gpus], "" if gpus in ran else f"{gpus}/"),
    ]
    rewards = []
    for line, row, work, start in places:
        ends = [line.figure(row, f"{start}learned_reward{end}") for end in SPREAD]
        if None in ends:
            return ""
        after = counted((runs_of(line.version).learned(work) or work)["iterations"], "iteration")
        rewards.append("{} ({} to {} by seed) after {}".format(*map(measured, ends), after))
    one, several = rewards
    return f" At the end its reward is {one}, and {several} with {counted(gpus, 'process')}."


def _answer(filled: Figure | None, added: Figure | None) -> str:
    """By the interval of ``filled`` over ``added``, which have the same base and are taken as independent."""
    if filled is None or added is None:
        return "open"
    low_high = product_of([estimate(filled), estimate(added)], [1, -1]).interval
    if low_high is None:
        return "open"
    return "sooner" if low_high[0] > 1 else "later" if low_high[1] < 1 else "within noise"


def sooner_on(line: Line, row: Row) -> Figure | None:
    """How many times as soon it has the reward of its line, as sure as all marks together are."""
    own, is_learned = line.figure(row, "sooner"), line.figure(line.base, "seeds") is not None
    if own is None or (is_learned and line.figure(row, "seeds") is None):  # by its own runs: that is another reward
        return None
    return {**own, "status": by_marks(partial(line.figure, row))}


def by_marks(figure_of: Callable[[str], Figure | None]) -> str:
    """``clear`` if what comes sooner or later does so surely at every mark of the rise; else what each mark says."""
    answers: list[tuple[object, str]] = []
    for end in MARKS:
        own, reached = figure_of(f"sooner{end}"), figure_of(f"reached{end}")
        if own is None:
            text = f"{measured(reached)} of {runs_in(reached, 'run')} had it" if reached else "not every run had it"
            answers.append((reached and (reached["value"], reached["runs"]), text))
        else:
            text = own["status"] if own["status"] != "clear" else "sooner" if own["value"] > 1 else "later"
            answers.append((text, text))
    return _of_marks(answers)


def _of_marks(answers: Sequence[tuple[object, str]]) -> str:
    """What ``by_marks`` says, of the answer at each mark and its text."""
    texts: dict[object, str] = {}
    marks: dict[object, list[str]] = {}  # of equal answers
    for end, (answer, text) in zip(MARKS, answers, strict=True):
        texts.setdefault(answer, text)
        marks.setdefault(answer, []).append(end[1:] or f"{100 * CONVERGED_SHARE:.0f}")
    is_clear = not marks.keys().isdisjoint({"sooner", "later"})
    if len(marks) == 1:
        return "clear" if is_clear else next(iter(texts.values()))
    all_marks = ", ".join(f"{texts[answer]} at {joined(own)} %" for answer, own in marks.items())
    return f"{DEPENDS if is_clear else ''}{all_marks} of the rise"


def times(line: Line) -> str:
    """``11.0 s on 1, 12.3 s on 2 and 12.8 s on 4 GPUs``, and where a run ended before it had the reward."""
    known = [(row["gpus"], line.figure(row, "time_to_reward_s"), line.figure(row, "reached")) for row in line.rows]
    is_learned = any(reached for *_, reached in known)
    reached = [(gpus, f"{measured(time)} s on {gpus}") for gpus, time, _ in known if time]
    missing = [str(gpus) for gpus, time, runs in known if not time and (runs or not is_learned)]
    never = f"; on {joined(missing)} not every run had it" if missing else ""
    return f"{joined([text for _, text in reached])} GPU{'' if reached[-1][0] == 1 else 's'}{never}"
