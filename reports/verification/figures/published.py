"""Published figures, computed again from the samples; ``published_files`` compares them with those of the files.

A figure is the geometric mean over processes. A ratio of two cases is that of ``series_ratio``.
"""

from collections.abc import Sequence
from typing import Any, Final

from reports.verification import formulas
from reports.verification.figures import case_figures, rewards
from reports.verification.figures.series_ratio import over_series
from reports.verification.finding import Json
from reports.verification.samples.run import world_size
from reports.verification.samples.stored import StoredCase, StoredSet

SCALES: Final = 0.80  # the whole interval of an efficiency is at least this
SUPERLINEAR: Final = 1.02
VERDICTS: Final = ("at least 80 %", "below 80 %", "within noise", "too few runs", "failed", "above ideal")


def figures_of(one: StoredSet) -> Json:
    """Return what is published of one set: a row for every case."""
    cases = one.in_order
    has_speeds = one.has_speeds
    verdicts = _verdicts(one) if has_speeds else {}
    fastest = case_figures.fastest_probes(one)
    rows = {
        stored.case_id: {
            **_figure(stored),
            **_ratios(stored, one, has_speeds=has_speeds),
            "measured": case_figures.measured(stored, fastest),
        }
        for stored in cases
    }
    return {"configurations": {case_id: {**row, "verdict": verdicts.get(case_id)} for case_id, row in rows.items()}}


def _figure(stored: StoredCase) -> Json:
    times_s = list(stored.times_s.values())
    span_s = formulas.interval(times_s)
    return {
        "runs": len(times_s),
        "seconds_per_iteration": stored.seconds_per_iteration if times_s else None,
        "interval_s": span_s and list(span_s),
        "frames_per_s": stored.frames_per_s if times_s and stored.case["workload"] != "all_reduce" else None,
    }


def _ratios(stored: StoredCase, one: StoredSet, *, has_speeds: bool) -> Json:
    """Return the speed-up against the baseline of its curve, and the gain against the case as shipped."""
    cases = one.in_order
    found: Json = dict.fromkeys(
        ("baseline", "speedup", "speedup_interval", "efficiency", "efficiency_interval", "as_shipped", "gain",
         "gain_interval", "sooner", "sooner_interval")
    )  # fmt: skip
    base = compared_with(stored, cases)
    if has_speeds and base:
        ideal = world_size(stored.case) / world_size(base.case)
        speedup, span = (1.0, None) if base is stored else over_series(base, stored, one.without_copies)
        found |= {
            "baseline": base.case_id,
            "speedup": speedup,
            "speedup_interval": span and list(span),
            "efficiency": speedup / ideal,
            "efficiency_interval": span and [bound / ideal for bound in span],
        }
    shipped = case_as_shipped(stored, cases)
    if shipped and shipped.times_s and stored.times_s:
        gain, span = over_series(shipped, stored, one.without_copies)
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
    return base if stored.times_s and base.times_s and not is_same_size else None


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


def _verdicts(one: StoredSet) -> dict[str, str]:
    """Return the verdict of every curve, by the case id of its largest number of ranks."""
    curves = (curve for curve in scaling_curves(one.in_order) if len(curve) > 1)
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


def is_emulated(stored: StoredCase) -> bool:
    """Tell whether in any round several nodes were parts of one machine."""
    return any(record["transport"] and record["transport"]["emulated"] for record in stored.completed)


def _was_skipped(stored: StoredCase) -> bool:
    return all(record["outcome"] == "skipped" for record in stored.rounds)


def verdict_of(one: StoredSet, points: Sequence[StoredCase]) -> str:
    """Return the word for the largest number of ranks, or for any that is above ideal."""
    base, *others = points
    spans = {
        other.case_id: [bound * world_size(base.case) / world_size(other.case) for bound in span]
        for other in others
        if other.times_s and base.times_s and (span := over_series(base, other, one.without_copies)[1])
    }
    if any(low > SUPERLINEAR for low, _ in spans.values()):
        return "above ideal"
    if not base.times_s or not others[-1].times_s:
        return "failed"
    if others[-1].case_id not in spans:
        return "too few runs"
    low, high = spans[others[-1].case_id]
    return "at least 80 %" if low >= SCALES else "below 80 %" if high < SCALES else "within noise"
