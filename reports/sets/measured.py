"""What was measured of each case besides its time, as ``figures.json`` and the table of all cases publish it. Pure.

Every value is that of the tables of the pages, from where they take it. None is not measured.
"""

import statistics
from collections.abc import Mapping
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.learned import learned
from reports.analysis.learning_curves import learning_curve
from reports.analysis.rows import CaseRow
from reports.analysis.start_ups import start_ups
from reports.analysis.time_split import PARTS, Inside, Kind, Values
from suite.schema.record import CaseResult

_RATES: Final[Mapping[str, Kind]] = {"step_fps": "step", "step_inference_fps": "step and inference"}

type Measured = Mapping[str, float | None]  # by name, with the unit in it


def measured_of_cases(campaign: Campaign) -> Mapping[str, Measured]:
    """Return case id -> figures."""
    results = {result.case.case_id: result for result in campaign.results}
    inside = campaign.inside
    return {row.case_id: _measured(results[row.case_id], row, inside[row.case_id]) for row in campaign.rows}


def _measured(result: CaseResult, row: CaseRow, found: Inside) -> Measured:
    starts = start_ups(result)
    learned_last = learned(result) if result.completed else None
    curve = learning_curve(result, row)
    return {
        "rank_skew": row.rank_skew,
        "warm_start_s": starts.median_s("warm"),
        "cold_start_s": starts.median_s("cold"),
        "cold_start_kernels": statistics.median(starts.kernels_compiled) if starts.kernels_compiled else None,
        **{name: found.fps[kind].median if kind in found.fps else None for name, kind in _RATES.items()},
        **{f"share_{name}": found.shares.get(part) for name, part in PARTS.items()},
        **_of_the_machine(found),
        **_of_ranks(found),
        "last_reward": learned_last.reward if learned_last else None,
        "last_return": curve[-1].reward if curve else None,
    }


def _of_the_machine(found: Inside) -> Measured:
    speed, memory_gb, energy_j = found.core_speed, found.peak_memory_gb, found.joules_per_million_frames
    return {
        "peak_memory_gb": _median(memory_gb),
        "gpu_memory_gb": _median(found.gpu_memory_gb),
        "gpu_utilisation_percent": _median(found.gpu_utilisation_percent),
        "power_w": _median(found.power_w),
        "joules_per_million_frames": _median(energy_j),
        "throttled_share": _median(found.throttled_share),
        "core_probe_us": _median(found.core_probe_us),
        "slowed_core_share": speed.slowed_share if speed else None,
        "unslowed_iteration_time_s": speed.unslowed_iteration_s if speed else None,
        "slower_after_slowed_core": speed.slower_by if speed else None,
        "stolen_cpu_share": _median(found.stolen_share),
        "other_processes_cpu_share": _median(found.others_share),
        "sampler_core_share": _median(found.sampler_core_share),
        "core_looks": speed.looks if speed else None,
        "slowed_core_looks": speed.slowed if speed else None,
        "peak_memory_least_gb": memory_gb.low if memory_gb else None,
        "peak_memory_most_gb": memory_gb.high if memory_gb else None,
        "joules_per_million_frames_least": energy_j.low if energy_j else None,
        "joules_per_million_frames_most": energy_j.high if energy_j else None,
    }


def _of_ranks(found: Inside) -> Measured:
    """Return which rank is fastest and slowest in the median round, with its time over that of the median rank."""
    ends = found.rank_extremes
    return {
        "fastest_rank": ends[0] if ends else None,
        "fastest_rank_ratio": found.rank_ratios[ends[0]].median if ends else None,
        "slowest_rank": ends[1] if ends else None,
        "slowest_rank_ratio": found.rank_ratios[ends[1]].median if ends else None,
    }


def _median(values: Values | None) -> float | None:
    return None if values is None else values.median
