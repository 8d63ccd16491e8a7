"""*Pipeline* and *Ray*: what a second process brings beside the same work in one."""

from collections.abc import Sequence

from reports.verification import formulas
from reports.verification.figures.rows import of_rate, of_ratio
from reports.verification.figures.same_work import work_of
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import is_pipeline
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return what each pipeline does, and how many times the frames of the same training in turn."""
    return {
        f"{one.folder.name}: {stored.case_id}": _pipeline(stored, one.of_report)
        for one in version.with_speeds
        for stored in one.of_report
        if is_pipeline(stored.case)
    }


def ray_figures(version: StoredVersion) -> dict[str, Json]:
    """Return what each collector over Ray does, and how many times the frames of the one in the same process."""
    return {
        f"{one.folder.name}: {stored.case_id}": _over_ray(stored, one.of_report)
        for one in version.with_speeds
        for stored in one.of_report
        if stored.case.get("workload") == "collection_ray"
    }


def _pipeline(stored: StoredCase, cases: Sequence[StoredCase]) -> Json:
    own_s, runs = list(stored.published_s.values()), stored.completed
    in_turn_s = _times_s(cases, work_of(stored.case, workload="train", nproc_per_node=1))
    collecting_s = [_mean(record, "pipeline.collected_time_s") for record in runs]
    return {
        **of_rate("optimiser_steps_per_s", stored.case["optimiser_steps"], own_s),
        **of_rate("collecting_frames_per_s", stored.frames, collecting_s),
        **of_ratio("over_in_turn", in_turn_s, own_s),
        "batches_between_syncs": formulas.median_of_known(
            [_mean(record, "pipeline.batches_since_sync") for record in runs]
        ),
        "staleness_updates": formulas.median_of_known([_mean(record, "pipeline.staleness_updates") for record in runs]),
        "overlapped": formulas.median_of_known([_share(record, "pipeline.overlapped_time_s") for record in runs]),
    }


def _over_ray(stored: StoredCase, cases: Sequence[StoredCase]) -> Json:
    own_s = list(stored.published_s.values())
    here_s = _times_s(cases, work_of(stored.case, workload="collection"))
    return {
        **of_rate("here_frames_per_s", stored.frames, here_s),
        **of_ratio("over_here", here_s, own_s),
        "collecting": formulas.median_of_known(
            [_share(record, "control.collected_time_s") for record in stored.completed]
        ),
    }


def _times_s(cases: Sequence[StoredCase], work: object) -> list[float]:
    return [time_s for other in cases if work_of(other.case) == work for time_s in other.published_s.values()]


def _values(record: Json, column: str) -> list[float]:
    """Of the first rank, in the iterations that count."""
    samples = record["ranks"][0]["samples"][column]
    counted = formulas.counted_iterations(record, formulas.MSER_RULE)
    return [samples[iteration] for iteration in counted if samples[iteration] is not None]


def _mean(record: Json, column: str) -> float:
    values = _values(record, column)
    return sum(values) / len(values)


def _share(record: Json, column: str) -> float:
    """Return the part of the time of the iterations that count."""
    times_s = formulas.slowest_s(record)
    counted = formulas.counted_iterations(record, formulas.MSER_RULE)
    return sum(_values(record, column)) / sum(times_s[iteration] for iteration in counted)
