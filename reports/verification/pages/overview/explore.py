"""*Explore*: energy, memory, warm starts and the time to a reward of every configuration, with intervals and runs."""

from collections.abc import Sequence
from typing import Final

from reports.verification.figures.case_figures import gpu_memory_of_rounds_gb, joules_per_million_frames
from reports.verification.figures.rows import of_median
from reports.verification.figures.series import series_of_kind, with_cold_starts
from reports.verification.figures.starts import starts_of, warm_starts_s
from reports.verification.finding import Json
from reports.verification.pages.cost.times_to_reward import Reached, compares_nodes_alone, times_to_reward
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.stored_version import StoredVersion

WITH_FRAMES: Final = {
    "train", "environment_step", "collection", "collection_ray", "async_pipeline", "policy_rollout",
    "dataset_recording",
}  # fmt: skip


def figures(version: StoredVersion) -> dict[str, Json]:
    found, tasks = {}, set()
    for one in version.with_speeds:
        cold = with_cold_starts(one.of_report)
        scaling = [cases for cases in series_of_kind(one, "scaling", trained=True) if not compares_nodes_alone(cases)]
        times = {case_id: reached for cases in scaling for case_id, reached in times_to_reward(cases).items()}
        for stored in one.of_report:
            if _is_shown(stored) and stored.case["series"] not in cold:
                found[f"{one.folder.name}/{stored.case_id}"] = _figures(stored, times.get(stored.case_id))
                tasks.add(stored.case["task"])
    return {"every configuration": {"configurations": len(found), "tasks": len(tasks)}, **found} if found else {}


def _is_shown(stored: StoredCase) -> bool:
    does = stored.case.get("workload", "train")
    return bool(stored.completed) and stored.case["device"] == "cuda" and does in WITH_FRAMES


def _figures(stored: StoredCase, reached: Reached | None) -> Json:
    times_s = reached.times_s if reached else []
    reached_s = _known(times_s)
    all_reached = bool(reached_s) and len(reached_s) == len(times_s)
    memory_gb = [] if _has_neighbours(stored) else gpu_memory_of_rounds_gb(stored.completed)
    of_runs = {
        "joules_per_million_frames": _known(joules_per_million_frames(stored.completed)),
        "gpu_memory_gb": _known(memory_gb),
        "warm_start_s": warm_starts_s(starts_of(stored)),
        "time_to_reward_s": reached_s if all_reached else [],
    }
    medians = {key: value for name, values in of_runs.items() for key, value in of_median(name, values).items()}
    return {
        **medians,
        "iteration_time_s_of_runs": [*stored.published_s.values()],
        **{f"{name}_of_runs": values for name, values in of_runs.items()},
        "reward": reached.reward if reached and all_reached else None,
    }


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _has_neighbours(stored: StoredCase) -> bool:
    """Whether env_check found processes of others on the GPUs: they use memory too."""
    checks = [check for record in stored.completed for check in record["environment"].get("checks", ())]
    return any((check["name"], check["verdict"]) == ("other_processes", "warning") for check in checks)
