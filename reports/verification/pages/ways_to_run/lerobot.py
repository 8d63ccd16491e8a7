"""*LeRobot*: how fast its policy acts, and how fast it writes a data set."""

from collections.abc import Sequence

from reports.verification import formulas
from reports.verification.figures.rows import of_median, of_rate
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return what each case does, then the most frames of any: of a policy that acts, and of a data set written."""
    cases = [(one.folder.name, stored) for one in version.with_speeds for stored in one.of_report]
    acting = {f"{name}: {stored.case_id}": stored for name, stored in cases if _does(stored, "policy_rollout")}
    writing = {f"{name}: {stored.case_id}": stored for name, stored in cases if _does(stored, "dataset_recording")}
    found = {
        **{of: _acting(stored) for of, stored in acting.items()},
        **{of: _writing(stored) for of, stored in writing.items()},
    }
    most_acting = [stored.frames_per_s for stored in acting.values() if stored.published_s]
    most_writing = [fps for of in writing if (fps := found[of]["written_frames_per_s"]) is not None]
    most = {
        "most_frames_per_s": max(most_acting, default=None),
        "most_written_frames_per_s": max(most_writing, default=None),
    }
    return {**found, **({"every case": most} if found else {})}


def _does(stored: StoredCase, workload: str) -> bool:
    return stored.case.get("workload") == workload


def _acting(stored: StoredCase) -> Json:
    """Single calls are timed in marked iterations."""
    runs = [(record, formulas.marked_iterations(record)) for record in stored.completed]
    return {
        **of_median("latency_s", _medians(runs, "lerobot.latency_median_s")),
        **of_median("latency_of_99_percent_s", _medians(runs, "lerobot.latency_p99_s")),
    }


def _writing(stored: StoredCase) -> Json:
    runs = [(record, formulas.counted_iterations(record, formulas.MSER_RULE)) for record in stored.completed]
    return {
        **of_rate("written_frames_per_s", stored.frames, _medians(runs, "lerobot.written_time_s")),
        **of_median("bytes_per_frame", _medians(runs, "lerobot.bytes_per_frame")),
    }


def _medians(runs: Sequence[tuple[Json, Sequence[int]]], column: str) -> list[float]:
    """Return the median of each run that has the column."""
    columns = [[record["ranks"][0]["samples"][column][iteration] for iteration in chosen] for record, chosen in runs]
    known = [[value for value in values if value is not None] for values in columns]
    return [formulas.median(values) for values in known if values]
