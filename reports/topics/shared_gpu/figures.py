"""What *Several trainings on one GPU* says besides figures.json. Pure."""

from collections.abc import Mapping

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.shared_gpu.both_ways import both_ways, ranges_over_without
from reports.topics.shared_gpu.model import Shared, groups, range_of_gains, range_of_speeds, without_mps


def shared_gpu_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case, and the number of trainings -> figures."""
    found = [(one.name, group) for one in version.scaling for group in groups(one.campaign.results)]
    every = without_mps([group for _, group in found])
    gains, speeds = range_of_gains(every), range_of_speeds(every)
    over_all = {
        f"{trainings} trainings": {"total_ratio_range": [*gains[trainings]], "each_ratio_range": [*speeds[trainings]]}
        for trainings in gains
    }
    by_case = {f"{name}: {each.result.case.case_id}": _figures(each) for name, group in found for each in group.numbers}
    mps = both_ways(version)
    compared = {
        f"{each.mps_name}: {each.through.result.case.case_id}, compared with {each.name}": with_interval(
            "over_without_mps", each.over_without
        )
        for each in mps
    }
    through_mps = {
        f"{trainings} through MPS": {"over_without_mps_range": [*values]}
        for trainings, values in ranges_over_without(mps).items()
    }
    return {**by_case, **over_all, **compared, **through_mps}


def _figures(each: Shared) -> Figures:
    slowest, fastest = each.each_fps or (None, None)
    return {
        **with_interval("total_frames_per_s", each.total_fps),
        "slowest_frames_per_s": slowest,
        "fastest_frames_per_s": fastest,
        **with_interval("total_ratio", each.over_one),
        **with_interval("each_ratio", each.each_over_alone),
        "all_at_work_share": each.all_at_work,
        "mps": each.mps,
    }
