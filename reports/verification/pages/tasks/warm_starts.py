"""How long the warm starts of a case took: from a process's first line to the end of its first iteration. Pure."""

from typing import Final

from reports.verification import formulas
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase

COLD_FACTOR: Final = 1.75  # times the shortest start of a case: more is cold where no record tells


def warm_starts_s(stored: StoredCase) -> list[float]:
    """A start is cold if its kernel cache was empty or kernels were compiled in it; else its time decides."""
    starts_s = {record["round"]: start_s(record) for record in stored.completed}
    found = []
    for record in stored.completed:
        time_s, compiled = starts_s[record["round"]], _kernels_compiled(record)
        if compiled is None and len(starts_s) > 1:
            is_warm = time_s <= COLD_FACTOR * min(starts_s.values())
        else:
            is_warm = compiled == 0
        if is_warm and stored.case.get("kernel_cache", "kept") == "kept":
            found.append(time_s)
    return found


def start_s(record: Json) -> float:
    """Return that of the slowest rank."""
    first_s = formulas.slowest_s(record)[0]
    return max(_of_rank_s(rank, first_s) for rank in record["ranks"])


def _of_rank_s(rank: Json, first_iteration_s: float) -> float:
    """By the rank's own clock, which runs after the import of torch; without it what its phases add up to."""
    phases_s, samples = rank["phases_s"], rank["samples"]
    clock_s = samples.get("start_s", [None])[0]
    if clock_s is None or "imports_torch" not in phases_s:
        return float(sum(phases_s.values()) + first_iteration_s)
    return float(phases_s["imports_torch"] + clock_s + samples["iteration_time_s"][0])


def _kernels_compiled(record: Json) -> int | None:
    """Return the most of any node; None where others shared the caches, or a node does not say."""
    counts = [rank.get("kernels_compiled") for rank in record["ranks"] if rank["local_rank"] == 0]
    was_alone = record.get("neighbours") == 0 and record.get("turns") is None
    known: list[int] = [count for count in counts if count is not None]
    return max(known) if known and len(known) == len(counts) and was_alone else None
