"""Starts on the pages of tasks: of each case, cold beside warm of each kind of work, and which work is named."""

from collections.abc import Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.figures.starts import PARTS, Start, starts_of
from reports.verification.finding import Json
from reports.verification.samples.case_file import COLD_SUFFIX, StoredCase
from reports.verification.samples.stored_version import StoredVersion

COLD_AND_WARM: Final = ", cold and warm"

type Work = tuple[list[Start], list[Start]]  # cold and warm starts


def figures(version: StoredVersion) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for one in version.with_speeds:
        every: dict[str, dict[str, list[Start]]] = {}  # series -> case id with a kept cache -> starts
        for stored in one.in_order:
            of_series = every.setdefault(stored.case["series"], {})
            of_series.setdefault(stored.case_id.removesuffix(COLD_SUFFIX), []).extend(starts_of(stored))
        cases = {stored.case_id: _of_case(stored) for stored in one.of_report if stored.completed}
        for series, starts in every.items():
            works = {case_id: work for case_id, known in starts.items() if any(work := _cold_and_warm(known))}
            cases |= {f"{case_id}{COLD_AND_WARM}": _of_work(*work) for case_id, work in works.items()}
            cases |= {series: {"said_of": max(works, key=lambda case_id: _says(*works[case_id]))}} if works else {}
        found |= {f"{one.folder.name}: {of}": said for of, said in cases.items()}
    return found


def _cold_and_warm(starts: Sequence[Start]) -> Work:
    """Return those of a known kind. If cold ones were made on purpose, only these: others may have found kernels."""
    cold = [start for start in starts if start.is_cold]
    on_purpose = [start for start in cold if start.is_on_purpose]
    return on_purpose or cold, [start for start in starts if start.is_cold is False]


def _says(cold: Sequence[Start], warm: Sequence[Start]) -> tuple[float, ...]:
    """Return by what a sentence chooses: starts of both kinds, made on purpose, many of them, with many kernels."""
    if not cold or not warm:
        return False, len(cold) + len(warm)
    return True, cold[0].is_on_purpose, min(len(cold), len(warm)), max(start.kernels or 0 for start in cold)


def _of_case(stored: StoredCase) -> Json:
    starts = starts_of(stored)
    warm, cold, unknown = ([start for start in starts if start.is_cold is kind] for kind in (False, True, None))
    usual = warm or starts
    return {
        "warm_starts": len(warm),
        "cold_starts": len(cold),
        "unknown_starts": len(unknown),
        "unknown_start_s": formulas.median_of_known([start.total_s for start in unknown]),
        "kernels_compiled": _kernels(cold),
        "warp_compile_time_s": formulas.median_of_known([start.compile_s for start in cold]),
        "scene_s": formulas.median_of_known([start.phases_s.get("environment_creation") for start in usual]),
        "first_iteration_s": formulas.median_of_known([start.first_iteration_s for start in usual]),
    }


def _of_work(cold: Sequence[Start], warm: Sequence[Start]) -> Json:
    cold_s, warm_s = ([start.total_s for start in starts] for starts in (cold, warm))
    ratio, span = formulas.ratio(cold_s, warm_s, 1) if cold and warm else (None, None)
    row = {**_of_starts("cold", cold), **_of_starts("warm", warm)}
    longer_s = {part: row["cold_parts_s"][part] - row["warm_parts_s"][part] for part in PARTS if cold and warm}
    return {
        **row,
        "ratio": ratio,
        "ratio_interval": span and list(span),
        "longer_by_s": row["cold_start_s"] - row["warm_start_s"] if cold and warm else None,
        "parts_longer_by_s": longer_s,
        "kernels_compiled": _kernels(cold),
        "warp_compile_time_s": formulas.median_of_known([start.compile_s for start in cold]),
    }


def _of_starts(kind: str, starts: Sequence[Start]) -> Json:
    totals_s = [start.total_s for start in starts]
    span = formulas.interval(totals_s)
    parts_s = {part: formulas.median([start.parts_s[part] for start in starts]) for part in PARTS if starts}
    return {
        f"{kind}_starts": len(starts),
        f"{kind}_start_s": formulas.median_of_known(totals_s),
        f"{kind}_start_s_interval": span and list(span),
        f"{kind}_parts_s": parts_s,
    }


def _kernels(cold: Sequence[Start]) -> list[int] | None:
    known = [start.kernels for start in cold if start.kernels is not None]
    return [min(known), max(known)] if known else None
