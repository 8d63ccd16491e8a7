"""*Turns*: the time of an iteration in rounds that take turns over that in rounds alone, and what both cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reports.verification import formulas
from reports.verification.figures.rows import of_median, of_pair, of_ratio
from reports.verification.finding import Json
from reports.verification.samples.case_file import ALONE_SUFFIX, StoredCase
from reports.verification.samples.round_facts import gpu_model, world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


@dataclass(frozen=True, kw_only=True)
class BothWays:
    """A case with its completed rounds in turns, and with those of its copy, which ran alone."""

    case_id: str
    in_turns: list[Json]
    alone: list[Json]
    times_s: tuple[list[float], list[float]]

    @property
    def gpu(self) -> str:
        return (gpu_model(self.in_turns[0]["environment"]) or "CPUs").removeprefix("NVIDIA ")


def figures(version: StoredVersion) -> dict[str, Json]:
    by_set = {one.folder.name: pairs for one in version.sets if (pairs := _pairs(one))}
    every = [pair for pairs in by_set.values() for pair in pairs]
    alike: dict[str, list[BothWays]] = {}
    for pair in every:
        alike.setdefault(f"{pair.case_id}, {pair.gpu}", []).append(pair)
    found = {f"{name}: {pair.case_id}": _of_case(pair) for name, pairs in by_set.items() for pair in pairs}
    found |= {name: {**_over(pairs), **_cost(pairs)} for name, pairs in by_set.items()}
    found |= {of: _pooled(pairs) for of, pairs in alike.items() if len(pairs) > 1}
    return {**found, "all": {"sets": len(by_set), **_over(every)}} if every else {}


def _pairs(one: StoredSet) -> list[BothWays]:
    copies = {stored.case_id: stored for stored in one.cases if stored.case_id.endswith(ALONE_SUFFIX)}
    pairs = ((stored, copies.get(stored.case_id + ALONE_SUFFIX)) for stored in one.of_report)
    found = [_both_ways(stored, copy) for stored, copy in pairs if copy is not None]
    return sorted((pair for pair in found if pair.in_turns and pair.alone), key=lambda pair: pair.case_id)


def _both_ways(stored: StoredCase, copy: StoredCase) -> BothWays:
    in_turns = [record for record in stored.completed if record.get("turns")]
    turning_s = [stored.published_s[record["round"]] for record in in_turns]
    alone_s = [*copy.published_s.values()]
    return BothWays(case_id=stored.case_id, in_turns=in_turns, alone=copy.completed, times_s=(turning_s, alone_s))


def _of_case(pair: BothWays) -> Json:
    in_turns_s, alone_s = pair.times_s
    return {
        **of_median("in_turns_s", in_turns_s),
        **of_median("alone_s", alone_s),
        "in_turns_runs": len(in_turns_s),
        "alone_runs": len(alone_s),
        **of_ratio("ratio", in_turns_s, alone_s),
    }


def _over(pairs: Sequence[BothWays]) -> Json:
    spans = [formulas.ratio(*pair.times_s, 1)[1] for pair in pairs]
    known = [span for span in spans if span]
    outside = sum(not low <= 1 <= high for low, high in known)
    return {"cases": len(known), "outside_noise": outside, **_mean(pairs)}


def _pooled(pairs: Sequence[BothWays]) -> Json:
    in_turns, alone = (sum(len(pair.times_s[way]) for pair in pairs) for way in (0, 1))
    return {"sets": len(pairs), "in_turns_runs": in_turns, "alone_runs": alone, **_mean(pairs)}


def _mean(pairs: Sequence[BothWays]) -> Json:
    return of_pair("ratio", formulas.mean_of_ratios([pair.times_s for pair in pairs]))


def _cost(pairs: Sequence[BothWays]) -> Json:
    """Return GPU-minutes of a process both ways, where the rounds in turns are of the same cases, and their ratio.

    It cannot be below the share of the time of rounds alone that is iterations, because those never overlap.
    """
    in_turns = [record for pair in pairs for record in pair.in_turns]
    alone = [record for pair in pairs for record in pair.alone]
    beside = {case_id for record in in_turns for case_id in record["turns"]["beside"]}
    turning = _minutes_of_a_process(in_turns) if beside <= {pair.case_id for pair in pairs} else None
    single = _minutes_of_a_process(alone)
    walls_s = [record["wall_time_s"] for record in alone]
    iterations_s = math.fsum(time_s for record in alone for time_s in formulas.slowest_s(record))
    return {
        "in_turns_gpu_minutes": turning,
        "alone_gpu_minutes": single,
        "cost_ratio": turning / single if turning is not None and single else None,
        "least_cost_ratio": None if None in walls_s else iterations_s / math.fsum(walls_s),
    }


def _minutes_of_a_process(records: Sequence[Json]) -> float | None:
    """Return the GPU-minutes of all blocks over their processes; a round that ran alone is a block of its own."""
    blocks: dict[tuple[int, frozenset[str]], list[Json]] = {}
    for record in records:
        beside = (record.get("turns") or {"beside": []})["beside"]
        blocks.setdefault((record["round"], frozenset([record["case"]["case_id"], *beside])), []).append(record)
    if any(record["wall_time_s"] is None for record in records):
        return None
    processes = sum(len(case_ids) for _, case_ids in blocks)
    return math.fsum(map(_gpu_minutes, blocks.values())) / processes


def _gpu_minutes(block: Sequence[Json]) -> float:
    """Return the time from the first start to the last end on as many GPUs as the largest case has; a CPU is one."""
    starts_s = [datetime.fromisoformat(record["started_utc"]).timestamp() for record in block]
    ends_s: list[float] = [start_s + record["wall_time_s"] for start_s, record in zip(starts_s, block, strict=True)]
    sizes = [world_size(record["case"]) if record["case"]["device"] == "cuda" else 1 for record in block]
    return max(sizes) * (max(ends_s) - min(starts_s)) / 60
