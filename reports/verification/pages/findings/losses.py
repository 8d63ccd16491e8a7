"""What scaling loses: of each case on more GPUs than the fewest, by the part that takes longer than its ideal time."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.figures.iteration_parts import PARTS
from reports.verification.figures.published import compared_with, efficiency_of
from reports.verification.figures.series import curves_on_one_node
from reports.verification.finding import Json
from reports.verification.pages.findings.loss_parts import PartsOfRounds
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

BETWEEN_RANKS: Final = {"all_reduce", "waiting"}  # lost whole, as one rank has neither
MUCH: Final = 0.1


def figures(version: StoredVersion) -> dict[str, Json]:
    found = [(one, *each) for one in version.with_speeds for each in _of_set(one)]
    rows = {f"{one.folder.name}: {stored.case_id}": row for one, stored, row in found}
    return {**rows, "every curve": _of_all(found)} if found else {}


def _of_set(one: StoredSet) -> Iterator[tuple[StoredCase, Json]]:
    """Yield each case and its row: of every curve that varies GPUs as shipped, without the fewest."""
    for curve in curves_on_one_node(one):
        before = PartsOfRounds(curve[0])
        for stored in curve[1:]:
            after, base = PartsOfRounds(stored), compared_with(stored, one.of_report)
            new = BETWEEN_RANKS if world_size(curve[0].case) == 1 else set()
            if base and after.names >= BETWEEN_RANKS and before.names == after.names - new:
                span = efficiency_of(base, stored)[1]
                yield stored, _row(before, after, span and [1 - span[1], 1 - span[0]])


def _row(before: PartsOfRounds, after: PartsOfRounds, lost_interval: list[float] | None) -> Json:
    is_strong = after.case["scaling"] == "strong"
    work = world_size(before.case) / world_size(after.case) if is_strong else 1.0
    ideal = work * formulas.median(before.times_s) / formulas.median(after.times_s)
    known = [part for part in PARTS if part in after.names]
    parts: Json = {part: after.share(part) - ideal * before.share(part) for part in known}
    return {
        "compared_with": before.case["case_id"],
        "lost": 1 - ideal,
        "lost_interval": lost_interval,
        "parts": parts,
        "part_intervals": _part_intervals(before, after, work, parts),
    }


def _part_intervals(before: PartsOfRounds, after: PartsOfRounds, work: float, parts: Json) -> Json:
    """Return the interval of each part, whose loss is linear in both shares and nearly so in logarithms of times."""
    if any(len(each.shares) < len(each.times_s) for each in (before, after)):
        return {}
    ideal = work * math.exp(before.log_mean_s - after.log_mean_s)
    found = {}
    for part, lost in parts.items():
        was = before.share(part)
        gained = [-ideal * value for value in before.varied(part, was)]
        found[part] = formulas.sum_of_means([after.varied(part, ideal * was), gained], lost)
    return {part: list(span) for part, span in found.items() if span}


def _of_all(found: Sequence[tuple[StoredSet, StoredCase, Json]]) -> Json:
    """Return how many curves lose much at their most GPUs, to what, and which case loses most of all for sure."""
    ordered = sorted(found, key=lambda each: world_size(each[1].case))
    ends = {(one.name, row["compared_with"]): row for one, _, row in ordered}.values()
    much = [row for row in ends if row["lost"] > MUCH and (not row["lost_interval"] or row["lost_interval"][0] > 0)]
    causes = Counter(max(row["parts"], key=row["parts"].get) for row in much)
    weak = [
        (world_size(stored.case), row["lost"], f"{one.folder.name}: {stored.case_id}")
        for one, stored, row in found
        if stored.case["scaling"] == "weak" and row["lost_interval"] and row["lost_interval"][0] > 0
    ]
    return {
        "curves": len(ends),
        "lose_much": len(much),
        "largest_part_of_curves": dict(causes),
        "loses_most": max(weak)[-1] if weak else None,
    }
