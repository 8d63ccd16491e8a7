"""Published figures, computed again from the samples; ``published_files`` compares them with those of the files.

A figure is the median over processes; a ratio of two cases is that of their medians. ``formulas`` has both, with their
intervals.
"""

from collections.abc import Sequence
from typing import Any, Final

from reports.verification import formulas
from reports.verification.figures import case_figures, rewards
from reports.verification.figures.series_ratio import over_series
from reports.verification.finding import Json
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet

SCALES: Final = 0.80  # the whole interval of an efficiency is at least this
SUPERLINEAR: Final = 1.02
VERDICTS: Final = ("scales", "limited", "inconclusive", "superlinear")


def figures_of(one: StoredSet) -> Json:
    """Return what is published of one set: its noise, and a row for every case."""
    cases = one.in_order
    has_speeds = one.has_speeds
    verdicts = _verdicts(one, cases) if has_speeds else {}
    fastest = case_figures.fastest_probes(one)
    rows = {
        stored.case_id: {
            **_figure(stored),
            **_ratios(stored, one, has_speeds=has_speeds),
            "measured": case_figures.measured(stored, fastest),
        }
        for stored in cases
    }
    return {
        "noise": one.noise(),
        "cases": {case_id: {**row, "verdict": verdicts.get(case_id)} for case_id, row in rows.items()},
    }


def _figure(stored: StoredCase) -> Json:
    times_s = list(stored.published_s.values())
    span_s = formulas.interval(times_s)
    return {
        "processes": len(times_s),
        "settled": sum(map(formulas.has_settled, stored.completed)) if times_s else 0,
        "seconds_per_iteration": stored.seconds_per_iteration if times_s else None,
        "interval_s": span_s and list(span_s),
        "frames_per_s": stored.frames_per_s if times_s and stored.case["workload"] != "all_reduce" else None,
    }


def _ratios(stored: StoredCase, one: StoredSet, *, has_speeds: bool) -> Json:
    """Return the speed-up against the baseline of its curve, and the gain against the case as shipped."""
    cases = one.in_order
    found: Json = dict.fromkeys(
        ("baseline", "speedup", "speedup_interval", "efficiency", "efficiency_interval", "fixed_window_speedup",
         "fixed_window_speedup_interval", "as_shipped", "gain", "gain_interval", "sooner", "sooner_interval")
    )  # fmt: skip
    base = compared_with(stored, cases)
    if has_speeds and base:
        ideal = world_size(stored.case) / world_size(base.case)
        speedup, span = ratio_of(base, stored)
        span = None if base is stored else span
        found |= {
            "baseline": base.case_id,
            "speedup": speedup,
            "speedup_interval": span and list(span),
            "efficiency": speedup / ideal,
            "efficiency_interval": span and [bound / ideal for bound in span],
        }
        if fixed := None if base is stored else over_series(base, stored, one.without_copies):
            found |= {"fixed_window_speedup": fixed[0], "fixed_window_speedup_interval": list(fixed[1])}
    shipped = case_as_shipped(stored, cases)
    if shipped and shipped.published_s and stored.published_s:
        gain, span = ratio_of(shipped, stored)
        found |= {"as_shipped": shipped.case_id, "gain": gain, "gain_interval": span and list(span)}
        if times := rewards.sooner(shipped, stored):
            found |= {"sooner": times[0], "sooner_interval": times[1] and list(times[1])}
    return found


def baseline_of(stored: StoredCase, cases: Sequence[StoredCase]) -> StoredCase:
    """Return the case on the fewest ranks of its curve, whether it ran or not."""
    return min((other for other in cases if _key(other) == _key(stored)), key=_size)


def case_as_shipped(stored: StoredCase, cases: Sequence[StoredCase]) -> StoredCase | None:
    """Return the case that one with a change of settings is compared with; None for any other case."""
    shipped = [other for other in cases if other.case["division"] == "closed" and _beside(other) == _beside(stored)]
    return shipped[-1] if shipped and stored.case["division"] == "open" else None


def compared_with(stored: StoredCase, cases: Sequence[StoredCase]) -> StoredCase | None:
    """Return the baseline if both completed; None for as many ranks on more nodes, which would compare networks."""
    base = baseline_of(stored, cases)
    is_same_size = world_size(base.case) == world_size(stored.case) and base is not stored
    return base if stored.published_s and base.published_s and not is_same_size else None


def ratio_of(base: StoredCase, other: StoredCase) -> tuple[float, formulas.Interval | None]:
    """Return the throughput of ``other`` over that of ``base``, with its interval; both have completed runs."""
    times_s, other_s = list(base.published_s.values()), list(other.published_s.values())
    return formulas.ratio(times_s, other_s, other.frames / base.frames)


def efficiency_of(base: StoredCase, other: StoredCase) -> tuple[float, formulas.Interval | None]:
    """Return the throughput of ``other`` over that of ``base`` with as many ranks, with its interval."""
    ideal = world_size(other.case) / world_size(base.case)
    value, span = ratio_of(base, other)
    return value / ideal, span and (span[0] / ideal, span[1] / ideal)


def _key(stored: StoredCase) -> tuple[Any, ...]:
    """Cases with equal keys differ in their number of ranks alone, so they are one curve."""
    return curve_of(stored.case)


def curve_of(case: Json) -> tuple[Any, ...]:
    """Return what is equal for the cases of one curve."""
    topology = f"-{case['nnodes']}x{case['nproc_per_node']}"
    names = ("series", "task", "rl_library", "stack", "device", "minibatch_rule", "assets", "num_steps_per_env")
    constant = case["num_envs_global"] if case["scaling"] == "strong" else case["num_envs"]
    return (*(case[name] for name in names), constant, case["case_id"].rpartition(topology)[2])


def _beside(stored: StoredCase) -> tuple[Any, ...]:
    case = stored.case
    names = ("series", "rl_library", "stack", "device", "nnodes", "nproc_per_node")
    return (*(case[name] for name in names), case["kernel_cache"])


def _size(stored: StoredCase) -> tuple[Any, ...]:
    return world_size(stored.case), stored.case["nnodes"], stored.case_id


# --- verdicts ---


def _verdicts(one: StoredSet, cases: Sequence[StoredCase]) -> dict[str, str | None]:
    """Return the verdict of every curve, by the case id of its largest number of ranks; None for too few processes."""
    curves = (curve for curve in scaling_curves(cases) if len(curve) > 1)
    return {curve[-1].case_id: verdict_of(one, curve) for curve in curves}


def scaling_curves(cases: Sequence[StoredCase]) -> list[list[StoredCase]]:
    """Return cases that differ in their number of ranks alone, fewest first; the first is the baseline, run or not.

    Without emulated nodes, and without what was never tried beyond the baseline. Of as many ranks on several numbers of
    nodes the fewest count.
    """
    curves: dict[tuple[Any, ...], dict[int, StoredCase]] = {}
    for stored in sorted(cases, key=_size):
        curve = curves.setdefault(_key(stored), {})
        if not is_emulated(stored) and not (curve and _was_skipped(stored)):
            curve.setdefault(world_size(stored.case), stored)
    return [list(curve.values()) for curve in curves.values() if not all(map(_was_skipped, curve.values()))]


def twin_of(one: StoredSet, base: StoredCase) -> StoredCase | None:
    """Return the repeat of a case, which is the same case by another name; None where none of its rounds completed."""
    found = (other for other in one.cases if other.case_id == f"{base.case_id}{TWIN_SUFFIX}" and other.published_s)
    return next(found, None)


def is_emulated(stored: StoredCase) -> bool:
    """Tell whether in any round several nodes were parts of one machine."""
    return any(record["transport"] and record["transport"]["emulated"] for record in stored.completed)


def _was_skipped(stored: StoredCase) -> bool:
    return all(record["outcome"] == "skipped" for record in stored.rounds)


def verdict_of(one: StoredSet, points: Sequence[StoredCase]) -> str | None:
    """Return the word; if the baseline ran twice, both have to give it, unless the twin has too few processes."""
    word, twin = word_of(points), twin_of(one, points[0])
    if word in {None, "inconclusive"} or twin is None or len(twin.published_s) < formulas.MIN_PROCESSES:
        return word
    return word if word_of([twin, *points[1:]]) == word else "inconclusive"


def word_of(points: Sequence[StoredCase]) -> str | None:
    """Return the word by one baseline; None if it or the largest number of ranks has too few processes."""
    base, *others = points
    spans = {
        other.case_id: span
        for other in others
        if other.published_s and base.published_s and (span := efficiency_of(base, other)[1])
    }
    if any(low > SUPERLINEAR for low, _ in spans.values()):
        return "superlinear"
    if others[-1].case_id not in spans:
        return None
    low, high = spans[others[-1].case_id]
    return "scales" if low >= SCALES else "limited" if high < SCALES else "inconclusive"
