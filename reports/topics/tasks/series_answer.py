"""What a series says, in a sentence or two above everything else that is shown of it."""

from collections.abc import Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign, has_one_size, shared_kind
from reports.analysis.divisions import Gain, gains
from reports.analysis.rows import CaseRow
from reports.analysis.scaling.answer import answer
from reports.analysis.scaling.lines import Line
from reports.analysis.stack_parts import stack_pairs
from reports.display import pair_tables
from reports.display.division_tables import has_seeds, time_to_reward
from reports.display.html import count, estimated, interval_of, ratio, seconds
from reports.display.series_tables import environments_text, ranks_text
from reports.topics.tasks.overview import most_frames
from reports.topics.tasks.start_up import start_up_answer
from suite.files.wording import counted, joined
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL

MOST_STACKS: Final = 2  # that are said; the rest has them all
NOTHING: Final = "No case of this series completed, so it says nothing yet."


def series_answer(parts: Sequence[Campaign], lines: Sequence[Line]) -> str:
    """``parts``: what each set has of the series. ``lines``: those of the series over one GPU."""
    if not any(part.completed for part in parts):
        return NOTHING
    if not any(part.is_training for part in parts):
        return _alone(parts)
    kind = shared_kind(parts)
    if kind == "start_up":
        return " ".join(said for part in parts if (said := start_up_answer(part.results, where=part.where)))
    of_kind = {
        "tuned": _tuned,
        "sweep": _sweep,
        **dict.fromkeys(("deterministic", "shared_gpu", "versions"), _settings),
    }
    if kind in of_kind:
        return of_kind[kind](parts)
    return f"{_scaling(parts, lines)} {most_frames([result for part in parts for result in part.results])}".strip()


def _scaling(parts: Sequence[Campaign], lines: Sequence[Line]) -> str:
    if lines:
        return answer(lines)
    if has_one_size(parts):
        compared = pair_tables.cases_in_words(pair for part in parts for pair in stack_pairs(part))
        return " ".join(compared[:MOST_STACKS]) or (
            "This series ran on one number of ranks, so nothing is known of how it scales."
        )
    return "No machine ran this series on one GPU and on several, so it has no speed-up over one GPU."


def _alone(parts: Sequence[Campaign]) -> str:
    """How long an iteration takes on the fewest and the most ranks of the set that has most, of a part or a pipeline.

    Of a sweep, how many frames there are with the fewest and the most environments.
    """
    of_sets = [sorted(_completed(part), key=lambda row: (row.world_size, row.nnodes, row.num_envs)) for part in parts]
    rows = max(of_sets, key=lambda rows: rows[-1].world_size if rows else 0)
    if shared_kind(parts) == "sweep":
        of_sweep = rows if len(rows) == 1 else (rows[0], rows[-1])
        return f"Nothing is trained. There are {' and '.join(map(_frames, of_sweep))}."
    ends = [rows[0], rows[-1]] if rows[0].world_size != rows[-1].world_size else rows[:1]
    times = (f"{_seconds(row)} s on {ranks_text(row)}{_few(row.rounds_completed)}" for row in ends)
    is_pipeline = any(result.case.is_pipeline for part in parts for result in part.results)
    what = (
        "One process simulates while another one learns. An iteration"
        if is_pipeline
        else "One part of an iteration alone, without training. It"
    )
    return f"{what} takes {' and '.join(times)}."


def _frames(row: CaseRow) -> str:
    fps = interval_of(row.total_fps, row.total_fps_interval, count)
    return f"{fps} frames/s in {environments_text(row.num_envs)} on {ranks_text(row)}{_few(row.rounds_completed)}"


def _sweep(parts: Sequence[Campaign]) -> str:
    """The number of environments that makes most frames, of all sets, beside the fewest of the same set."""
    found = most_and_least_of_sweep(parts)
    if found is None:
        return NOTHING
    most, least = found
    said = (
        f"With {most.rl_library}, {most.num_envs:,} environments on {ranks_text(most)} make the most frames,"
        f" {interval_of(most.total_fps, most.total_fps_interval, count)} a second{_few(most.rounds_completed)}"
    )
    if least is most or not most.total_fps or not least.total_fps:
        return f"{said}."
    return f"{said}: {ratio(most.total_fps / least.total_fps)} times those of {least.num_envs:,} environments."


def most_and_least_of_sweep(parts: Sequence[Campaign]) -> tuple[CaseRow, CaseRow] | None:
    """The case with the most frames per second, and the one with the fewest environments beside it."""
    rows = [(row.total_fps, row, part) for part in parts for row in _completed(part) if row.total_fps is not None]
    if not rows:
        return None
    _, most, part = max(rows, key=lambda each: each[0])
    alike = [row for _, row, of in rows if of is part and (row.rl_library, row.stack) == (most.rl_library, most.stack)]
    return most, min(alike, key=lambda row: row.num_envs)


def _tuned(parts: Sequence[Campaign]) -> str:
    """The change that gains most, and what it does to learning."""
    best = best_of_tuned(parts)
    if best is None:
        return "No tuned case completed beside the settings as shipped, so nothing is known of what tuning gains."
    few = _few(min(best.rounds, best.closed_rounds))
    learned = time_to_reward(best) if has_seeds(best) else f"Reward after as many frames: {best.learning}."
    return (
        f"The change that gains most, {', '.join(best.changes)}, makes {estimated(best.gain)} times the frames of the"
        f" settings as shipped, with {best.case.rl_library} on {ranks_text(best.case)}{few}."
        f" Verdict: {best.speed}. {learned}"
    )


def best_of_tuned(parts: Sequence[Campaign]) -> Gain | None:
    """The change that gains most, one with several seeds or an interval if there is any; None if none completed.

    Several seeds say more of learning than a larger gain with one.
    """
    found = [(gain.gain, gain) for part in parts for gain in gains(part.results, part.twins) if gain.gain]
    best = max(found, key=lambda each: (has_seeds(each[1]), each[0].interval is not None, each[0].value), default=None)
    return best and best[1]


def _settings(parts: Sequence[Campaign]) -> str:
    """Frames per second with each change over those as shipped, of the set and the RL library with most runs."""
    found = [(gain.gain, gain) for part in parts for gain in gains(part.results, part.twins) if gain.gain]
    if not found:
        return "No case completed both with the change and as shipped, so nothing is known of what it costs."
    most = max((gain for _, gain in found), key=lambda gain: gain.rounds)
    alike = [(value, gain) for value, gain in found if gain.closed == most.closed]
    base = "the pinned versions" if all(gain.case.with_packages for _, gain in alike) else "the settings as shipped"
    said = [f"{estimated(value)} times with {', '.join(gain.changes)} ({gain.speed})" for value, gain in alike]
    return (
        f"Compared with {base}, the frames per second are {joined(said)}, with"
        f" {most.case.rl_library} on {ranks_text(most.case)}{_few(min(most.rounds, most.closed_rounds))}."
    )


def _completed(part: Campaign) -> list[CaseRow]:
    return [row for row in part.rows if row.rounds_completed]


def _seconds(row: CaseRow) -> str:
    return interval_of(row.iteration_time_s, row.iteration_time_interval_s, seconds)


def _few(runs: int) -> str:
    """Return how many runs, where they are too few for an interval."""
    return "" if runs >= MIN_ROUNDS_FOR_INTERVAL else f" ({counted(runs, 'run')})"
