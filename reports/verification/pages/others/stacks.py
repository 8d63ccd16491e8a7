"""*Stacks*: the throughput of a case over that of its like on another stack, and what iterations of both go to."""

from collections.abc import Sequence
from typing import Final

from reports.verification import formulas
from reports.verification.figures import iteration_parts, rewards
from reports.verification.figures.case_figures import gpu_memory_gb
from reports.verification.figures.published import curve_of, ratio_of
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

ORDER: Final = ("kitless", "ovphysx", "isaacsim")  # each is compared with the first of these that was measured


def figures(version: StoredVersion) -> dict[str, Json]:
    pairs = [
        (one, base, stored)
        for one in version.with_speeds
        for stored in one.of_report
        if (base := _base(one, stored)) is not stored
    ]
    rows = {f"{one.folder.name}: {stored.case_id}": _figures(one, base, stored) for one, base, stored in pairs}
    by_stacks: dict[str, list[Json]] = {}
    for (_, base, stored), row in zip(pairs, rows.values(), strict=True):
        if row["ratio"] is not None:
            by_stacks.setdefault(f"{stored.case['stack']} beside {base.case['stack']}", []).append(row)
    return {**rows, **{stacks: _of_all(of_stacks) for stacks, of_stacks in by_stacks.items()}}


def _base(one: StoredSet, stored: StoredCase) -> StoredCase:
    """Return the case of its like that all others are compared with."""
    return min((other for other in one.of_report if _key(other) == _key(stored)), key=_rank)


def _key(stored: StoredCase) -> tuple[object, ...]:
    case = stored.case
    as_first = {**case, "stack": ORDER[0], "case_id": stored.case_id.replace(f"-{case['stack']}-", f"-{ORDER[0]}-", 1)}
    return curve_of(as_first), case["nnodes"], case["nproc_per_node"]


def _rank(stored: StoredCase) -> int:
    return ORDER.index(stored.case["stack"])


def _figures(one: StoredSet, base: StoredCase, stored: StoredCase) -> Json:
    ratio, span = ratio_of(base, stored) if base.published_s and stored.published_s else (None, None)
    noise, ours, theirs = one.noise(stored.case["series"]), _side(stored), _side(base)
    before_s, after_s = theirs["parts_s"], ours["parts_s"]
    is_known = before_s and before_s.keys() == after_s.keys()
    return {
        "compared_with": base.case_id,
        "ratio": ratio,
        "ratio_interval": span and list(span),
        "against_noise": formulas.against_noise(ratio, span, noise),
        "noise": noise,
        "slower_by": ratio and 1 / ratio - 1,
        "slower_by_interval": span and [1 / span[1] - 1, 1 / span[0] - 1],
        **ours,
        "of_compared": theirs,
        "longer_s": {part: after_s[part] - before_s[part] for part in after_s} if is_known else {},
        "all_longer_s": sum(after_s.values()) - sum(before_s.values()) if is_known else None,
    }


def _side(stored: StoredCase) -> Json:
    shares = iteration_parts.mean_shares(stored.completed)
    return {
        "parts_s": {part: share * stored.seconds_per_iteration for part, share in shares.items()},
        "gpu_memory_gb": gpu_memory_gb(stored.completed),
        "reward": rewards.last_reward(stored),
    }


def _of_all(rows: Sequence[Json]) -> Json:
    slower_by = [row["slower_by"] for row in rows]
    return {
        "compared": len(rows),
        "slower": sum(row["against_noise"] == "slower" for row in rows),
        "slower_by_range": [min(slower_by), max(slower_by)],
    }
