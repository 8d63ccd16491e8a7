"""Start-ups of processes: a sentence, a table of their parts below its title, and a table of all cases."""

from collections.abc import Callable, Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import variant_of
from reports.analysis.start_ups import (
    PARTS,
    ColdAndWarm,
    StartUps,
    cold_and_warm,
    compile_time_s,
    headline,
    median_of_known,
    median_parts_s,
    start_ups,
    whole_of,
)
from reports.display.charts.drawing import as_table
from reports.display.figure import TableFigure
from reports.display.html import MISSING, Html, estimated, html_table, paragraph, seconds
from suite.files.wording import counted
from suite.schema.record import Case, CaseResult
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL
from suite.statistics.start_up import StartUp

CAPTION: Final = (
    "From the first line of a process to the end of its first iteration. Each part is its median over the starts, so"
    " the parts need not add up to the whole, which is a mean. Scene: the environment is created. Preparation: ranks"
    " are joined, and the library prepares itself."
)
type _Line = tuple[str, Sequence[StartUp]]  # label, and the starts


def start_up_answer(results: Sequence[CaseResult], *, where: str) -> str:
    """How long a cold and a warm start take, in a sentence. ``where``: the hardware, in words."""
    found = cold_and_warm(results)
    most = says_most(found)
    if most is None:
        known = any(result.completed for result in results)
        return "Of the stored starts it is not known whether they were cold or warm." if known else ""
    if most.has_both:
        return (
            f"A cold start takes {_time(most.cold)} and a warm one {_time(most.warm)}, with {_work(most)}, on {where}"
            f"{_difference(most)}{_compiled(most)}."
        )
    if all(not each.cold for each in found):
        return f"Only warm starts are stored: one takes {_time(most.warm)}, with {_work(most)}, on {where}."
    if all(not each.warm for each in found):
        return (
            f"Only cold starts are stored: one takes {_time(most.cold)}, with {_work(most)}, on {where}"
            f"{_compiled(most)}."
        )
    return "No case has both cold and warm starts, so they cannot be compared."


def says_most(found: Sequence[ColdAndWarm]) -> ColdAndWarm | None:
    """Return the work that the sentence is of: with starts of both kinds, or else with most; None without any."""
    return headline(found) or max(found, key=lambda each: len(each.cold) + len(each.warm), default=None)


def parts_title(both: ColdAndWarm) -> str:
    """What the parts of cold beside warm starts show, in a sentence."""
    return f"A cold start takes {estimated(both.ratio)} times as long as a warm one, with {_work(both)}"


def parts_table(series: Campaign, found: Sequence[ColdAndWarm]) -> TableFigure:
    """What a process does until it trains, phase by phase, in seconds: cold beside warm, for each of ``found``."""
    lines = [line for both in found for line in _lines_of(both, found)]
    table = html_table(
        ["Start", "Whole start in s", *(f"{part.capitalize()} in s" for part in PARTS), "Starts"],
        (
            [
                label,
                estimated(whole_of(starts), seconds),
                *map(seconds, median_parts_s(starts).values()),
                str(len(starts)),
            ]
            for label, starts in lines
        ),
        label="Parts of a start",
    )
    return as_table(series, chart="start-up", caption=CAPTION, data=table)


def _lines_of(both: ColdAndWarm, found: Sequence[ColdAndWarm]) -> list[_Line]:
    which = _differing(both, found)
    return [(f"Cold{which}", both.cold), (f"Warm{which}", both.warm)]


def _differing(both: ColdAndWarm, found: Sequence[ColdAndWarm]) -> str:
    """Return the words in which the work differs from that of the other lines."""
    ways: tuple[Callable[[Case], str], ...] = (
        lambda case: case.rl_library,
        lambda case: case.stack,
        lambda case: f"{case.num_envs:,} envs",
        lambda case: case.topology,
        variant_of,
    )
    differing = [way(both.case) for way in ways if len({way(other.case) for other in found}) > 1]
    return "".join(f", {word}" for word in differing if word)


def _time(starts: Sequence[StartUp]) -> str:
    """``31.2 s (30.1 to 32.5)``; without an interval, from how many starts."""
    whole = whole_of(starts)
    few = f" ({counted(len(starts), 'start')})" if len(starts) < MIN_ROUNDS_FOR_INTERVAL else ""
    between = "" if whole.interval is None else f" ({' to '.join(map(seconds, whole.interval))})"
    return f"{seconds(whole.value)} s{between}{few}"


def _work(found: ColdAndWarm) -> str:
    case = found.case
    environments = counted(case.num_envs, "environment")
    if case.world_size == 1:
        return f"{case.rl_library} and {environments}"
    return (
        f"{case.rl_library}, {environments} on each of {case.world_size} {'GPUs' if case.device == 'cuda' else 'ranks'}"
    )


def _difference(both: ColdAndWarm) -> str:
    """Which part of the start makes the difference; nothing if cold starts do not take longer."""
    longer_s = both.longer_by_s
    whole_s = both.whole_longer_by_s
    part = max(longer_s, key=lambda name: longer_s[name])
    if whole_s <= 0 or longer_s[part] <= 0:
        return ""
    share = "most" if longer_s[part] > whole_s / 2 else "the largest part"
    return f"; {share} of the difference is in the {part} ({seconds(longer_s[part])} of {seconds(whole_s)} s)"


def _compiled(found: ColdAndWarm) -> str:
    counts, time_s = found.kernels_compiled, compile_time_s(found.cold)
    if not counts:
        return ""
    verb = "is" if counts[-1] == 1 else "are"
    kernels = "kernel" if counts[-1] == 1 else "kernels"
    by_warp = "" if time_s is None else f", and Warp's compiler takes {seconds(time_s)} s"
    return f"; {_range(counts)} {kernels} {verb} compiled{by_warp}"


def start_up_table(results: Sequence[CaseResult], *, label: str) -> Html:
    """Every case that completed a round, in the order given."""
    found = [(result.case, start_ups(result)) for result in results if result.completed]
    if not found:
        return paragraph("No case completed a round, so nothing is known of its start.")
    unknown = any(None in starts.by_kind for _, starts in found)
    timed = any(_compile_time_s(starts) is not None for _, starts in found)
    return html_table(
        [
            "Case",
            "Ranks",
            "Warm start in s",
            "Cold start in s",
            "Kernels compiled",
            *(["Warp's compiler in s"] if timed else []),
            *(["Warm or cold in s"] if unknown else []),
            "Scene in s",
            "First iteration in s",
            "Rounds warm, cold",
        ],
        (
            [
                case.case_id,
                str(case.world_size),
                seconds(starts.median_s("warm")),
                seconds(starts.median_s("cold")),
                _range(starts.kernels_compiled),
                *([seconds(_compile_time_s(starts))] if timed else []),
                *([seconds(starts.median_s(None))] if unknown else []),
                seconds(median_of_known([start.phases_s.get("environment_creation") for start in starts.usual])),
                seconds(median_of_known([start.first_iteration_s for start in starts.usual])),
                _rounds(starts),
            ]
            for case, starts in found
        ),
        label=label,
    )


def _compile_time_s(starts: StartUps) -> float | None:
    """Of the cold ones, as the number of kernels."""
    return compile_time_s(starts.by_kind.get("cold", ()))


def _range(counts: Sequence[int]) -> str:
    if not counts:
        return MISSING
    return str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"


def _rounds(starts: StartUps) -> str:
    warm, cold, unknown = (len(starts.by_kind.get(kind, ())) for kind in ("warm", "cold", None))
    if not warm + cold:
        return MISSING
    return f"{warm}, {cold}" + (f" and {unknown} not known" if unknown else "")
