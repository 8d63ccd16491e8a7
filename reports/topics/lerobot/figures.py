"""What *LeRobot* says besides figures.json. Pure."""

from collections.abc import Mapping

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.lerobot.model import Acting, Recording, acting, most_acting, most_written, recordings


def lerobot_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, then the most of all that the answer says."""
    acted = {
        f"{one.name}: {each.case.case_id}": each for one in version.scaling for each in acting(one.campaign.results)
    }
    recorded = {
        f"{one.name}: {each.case.case_id}": each for one in version.scaling for each in recordings(one.campaign.results)
    }
    if not acted and not recorded:
        return {}
    acts, writes = most_acting([*acted.values()]), most_written([*recorded.values()])
    most = {
        "most_frames_per_s": acts and acts.fps and acts.fps.value,
        "most_written_frames_per_s": writes and writes.written_fps and writes.written_fps.value,
    }
    found = {of: _acting(each) for of, each in acted.items()} | {of: _recording(each) for of, each in recorded.items()}
    return {**found, "every case": most}


def _acting(each: Acting) -> Figures:
    return {
        **with_interval("latency_s", each.latency_s),
        **with_interval("latency_of_99_percent_s", each.rare_latency_s),
    }


def _recording(each: Recording) -> Figures:
    return {
        **with_interval("written_frames_per_s", each.written_fps),
        **with_interval("bytes_per_frame", each.bytes_per_frame),
    }
