"""The points that a reader can choose from: every configuration that trained or stepped on GPUs. Pure."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import comparison_key, is_emulated, measured_for_speed, task_name, variant_of
from reports.analysis.environments import gpu_name
from reports.analysis.rows import CaseRow
from reports.analysis.same_work import work_of
from reports.analysis.series_kind import Change, change_of
from reports.analysis.time_to_reward import TimeToReward, rewarded_curves, time_to_reward
from reports.display.addresses import page_of_task
from reports.display.series_tables import STACK_NAMES
from reports.sets.version import ResultSet, Version
from reports.topics.explore.metrics import Samples, figures_of, has_neighbours, samples_of
from suite.files.wording import counted
from suite.schema.record import Case, CaseResult, Environment, Workload
from suite.statistics.intervals import Estimate
from suite.statistics.twins import is_twin

# Workloads beside training that have frames as it has, as they are named among the RL libraries.
OTHERS: Final[Mapping[Workload, str]] = {
    "environment_step": "steps alone",
    "collection": "TorchRL's collector alone",
    "collection_ray": "TorchRL's collector alone, over Ray",
    "async_pipeline": "TorchRL's pipeline",
    "policy_rollout": "LeRobot's policy acting",
    "dataset_recording": "LeRobot's data set writer",
}
AS_SHIPPED: Final = "as shipped"
CHANGES: Final[Mapping[Change, str]] = {
    "tuned": "tuned",
    "deterministic": "deterministic",
    "shared_gpu": "several trainings on a GPU",
    "versions": "other versions of packages",
}


@dataclass(frozen=True, kw_only=True)
class Point:
    """One configuration of one campaign, with its metrics."""

    key: str  # names it in the address of a view
    task: str
    library: str
    gpu: str  # model, without its maker
    gpus: int
    nodes: str  # such as ``2 simulated nodes``; empty for one node
    num_envs: int  # of each GPU
    num_envs_global: int
    physics: str
    settings: str  # what the case is compared by, such as tuned
    details: str  # what else sets it apart; mostly empty
    machine: str  # as it is called everywhere, which no other machine is
    runs: int
    figures: Mapping[str, Estimate]  # by the metric's key
    samples: Samples
    half_widths: Mapping[str, float]  # of its time over that of others, by their key; logarithms, by the set's model
    reward: float | None  # that the time to the reward is of
    baseline: str | None  # key of the point that its speed-up is over
    together: tuple[str, ...]  # points with the same were measured on one machine in one campaign
    curve: str  # points with the same differ in nothing but the number of GPUs
    sweep: str  # points with the same differ in nothing but the number of environments
    file: str  # address of its stored samples
    page: str  # address of its series

    @property
    def name(self) -> str:
        """Such as ``Ant, rsl_rl, Newton, 4 x H200, 1,024 environments on each``, with what else sets it apart."""
        size = f"{self.num_envs:,} environments on each"
        parts = (self.task, self.library, self.physics, self.hardware, size, *self._changed, self.details)
        return ", ".join(part for part in parts if part)

    @property
    def _changed(self) -> tuple[str, ...]:
        return () if self.settings == AS_SHIPPED else (self.settings,)

    @property
    def hardware(self) -> str:
        return f"{self.gpus} x {self.gpu}" + (f", {self.nodes}" if self.nodes else "")


def points(version: Version) -> tuple[Point, ...]:
    """Every point of the sets whose series are shown, by task, library, GPU and size."""
    found = [point for one in version.scaling for point in _points(one, version.machine_names_of(one))]
    return tuple(
        sorted(
            found,
            key=lambda point: (
                point.task, point.library, point.gpu, point.gpus, point.num_envs, point.machine, point.key,
            ),
        )
    )  # fmt: skip


def _points(one: ResultSet, machine_names: Mapping[Environment, str]) -> list[Point]:
    rows = {row.case_id: row for row in one.campaign.rows}
    results = [result for result in measured_for_speed(one.campaign.results) if _counts(result)]
    times = _times_to_reward(one.campaign)
    works = Counter(work_of(result.case) for result in results)
    counts: dict[tuple[str | int, ...], set[int]] = {}
    for result in results:
        counts.setdefault(comparison_key(result.case), set()).add(result.case.world_size)
    return [
        _point(
            one,
            result,
            rows[result.case.case_id],
            times.get(result.case.case_id),
            baseline=_baseline(result.case, results) if len(counts[comparison_key(result.case)]) > 1 else None,
            machine_names=machine_names,
            names_series=works[work_of(result.case)] > 1,
            half_widths=_half_widths(one, result.case, [other.case for other in results]),
        )
        for result in results
    ]


def _half_widths(one: ResultSet, case: Case, others: Sequence[Case]) -> dict[str, float]:
    """Half the interval of the ratio to each other case of the task that follows ``case`` and has one."""
    after = others[others.index(case) + 1 :]
    ratios = {_key(one, other): one.campaign.model.ratio(case, other) for other in after if other.task == case.task}
    return {
        key: math.log(ratio.interval[1] / ratio.interval[0]) / 2
        for key, ratio in ratios.items()
        if ratio and ratio.interval
    }


def _counts(result: CaseResult) -> bool:
    """Whether it completed on GPUs, and is no repeat that only measures noise."""
    case = result.case
    has_frames = case.learns or case.workload in OTHERS
    return bool(result.completed) and case.device == "cuda" and has_frames and not is_twin(case)


def _point(
    one: ResultSet,
    result: CaseResult,
    row: CaseRow,
    time: TimeToReward | None,
    *,
    baseline: str | None,
    machine_names: Mapping[Environment, str],
    names_series: bool,
    half_widths: Mapping[str, float],
) -> Point:
    case = result.case
    where = _where(one.campaign, result)
    samples = samples_of(result, time)
    library = case.rl_library if case.learns else OTHERS[case.workload]
    apart = (case.task, library, case.stack, case.minibatch_rule, variant_of(case), case.topology)
    return Point(
        key=_key(one, case),
        task=task_name(case.task),
        library=library,
        gpu=gpu_name(where) or "GPU",
        gpus=case.world_size,
        nodes=_nodes(result),
        num_envs=case.num_envs,
        num_envs_global=case.num_envs_global,
        physics=STACK_NAMES[case.stack],
        settings=_settings(case),
        details=_details(result, names_series=names_series),
        machine=machine_names[where],
        runs=row.rounds_completed,
        figures=figures_of(result, row, samples, scales=baseline is not None),
        samples=samples,
        half_widths=half_widths,
        reward=time.reward if time and "reward" in samples else None,
        baseline=None if baseline is None else f"{one.name}/{baseline}".removeprefix("/"),
        together=_host(one, where),
        curve=f"{one.name}/{row.series}/{row.curve}",
        sweep=f"{one.name}/{row.series}/{'/'.join(apart)}",
        file=f"data/{one.name or 'results'}/cases/{case.case_id}.json",
        page=f"{page_of_task(task_name(case.task))}.html",
    )


def _key(one: ResultSet, case: Case) -> str:
    return f"{one.name}/{case.case_id}".removeprefix("/")


def _baseline(case: Case, results: Sequence[CaseResult]) -> str:
    """Return the id of the case that ``reports.analysis.rows`` takes as the baseline: the fewest GPUs and nodes."""
    alike = [result.case for result in results if comparison_key(result.case) == comparison_key(case)]
    return min(alike, key=lambda each: (each.world_size, each.nnodes, each.case_id)).case_id


def _where(campaign: Campaign, result: CaseResult) -> Environment:
    """Return the environment of most of its completed runs."""
    environments = [record.environment for record in result.completed]
    return max((place.environment for place in campaign.places), key=environments.count)


def _host(one: ResultSet, environment: Environment) -> tuple[str, ...]:
    """Labels of machines are whoever's measured, so the campaign counts too."""
    return (one.name, environment.host_label or "", environment.cpu_model or "", gpu_name(environment) or "")


def _nodes(result: CaseResult) -> str:
    if result.case.nnodes == 1:
        return ""
    return counted(result.case.nnodes, "simulated node" if is_emulated(result) else "node")


def _settings(case: Case) -> str:
    return AS_SHIPPED if case.division == "closed" else CHANGES[change_of(case)]


def _details(result: CaseResult, *, names_series: bool) -> str:
    case = result.case
    variant = variant_of(case).removesuffix(case.minibatch_rule).removesuffix("-")
    said = [
        "" if variant == _settings(case) else variant,
        "updates kept" if case.minibatch_rule == "fixed_updates" else "",
        case.series if names_series else "",  # its campaign measured the same work in another series too
        "other processes on the GPU" if has_neighbours(result) else "",
    ]
    return ", ".join(part for part in said if part)


def _times_to_reward(campaign: Campaign) -> dict[str, TimeToReward]:
    """Return how long each case took to the highest reward that every run of its curve reached, by case id.

    Cases of a curve are compared, so series that vary anything but the number of GPUs are left out.
    """
    found: dict[str, TimeToReward] = {}
    for name in campaign.series_names:
        series = campaign.series(name).only(lambda result: result.case.learns)
        if series.kind != "scaling":
            continue
        for _, results, reward in rewarded_curves(series):
            if reward is not None:
                found |= {one.case.case_id: time_to_reward(one, reward) for one in results}
    return found
