"""What *Other versions of packages* says besides figures.json. Pure."""

from collections import Counter
from collections.abc import Mapping

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.releases.model import Release, frames_range, releases


def release_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case with other versions, and ``all`` -> figures."""
    found = {
        f"{one.name}: {release.other.case.case_id}": release
        for one in version.scaling
        for release in releases(one.campaign)
    }
    if not found:
        return {}
    timed = [release for release in found.values() if release.frames]
    least, most = frames_range(timed) or (None, None)
    over_all = {
        "comparisons": len(timed),
        "verdicts": dict(sorted(Counter(release.speed for release in timed).items())),
        "least_frames_ratio": least,
        "most_frames_ratio": most,
    }
    return {**{of: _figures(release) for of, release in found.items()}, "all": over_all}


def _figures(release: Release) -> Figures:
    pinned_s, other_s = release.starts_s
    return {
        "compared_with": release.pinned.case.case_id,
        **with_interval("frames_ratio", release.frames),
        "against_noise": release.speed,
        **with_interval("pinned_start_s", pinned_s),
        **with_interval("start_s", other_s),
        **with_interval("start_ratio", release.start_longer),
    }
