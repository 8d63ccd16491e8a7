"""Speed-ups of machines over one GPU, by task, library and how GPUs share the work. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import task_name
from reports.analysis.environments import gpu_name, places
from reports.analysis.scaling.scaling_groups import ScalingGroup, ScalingPoint, scaling_groups
from reports.analysis.time_to_reward import TimeToReward, rewarded_curves, time_to_reward
from suite.schema.record import Case, CaseResult, Environment
from suite.statistics.intervals import Estimate, mean_of
from suite.statistics.twins import is_twin

type Mode = Literal["own", "split"]

# Scaling of a series -> how its GPUs share the work.
MODES: Final[Mapping[str, Mode]] = {"weak": "own", "strong": "split"}
RULES: Final[Mapping[str, str]] = {"fixed_updates": "updates kept", "fixed_minibatch": "minibatch kept"}

BASELINE_SPEEDUP: Final = Estimate(value=1.0, interval=None)


@dataclass(frozen=True, kw_only=True)
class Point:
    """A number of GPUs on a line."""

    case: Case
    gpus: int
    fps: Estimate  # frames per second, learning included
    speedup: Estimate  # over one GPU; without an interval for one GPU itself
    runs: int
    to_reward: TimeToReward | None = None  # the highest that every run of the line reached; None where none rose


@dataclass(frozen=True, kw_only=True)
class Line:
    """One machine: points that differ in nothing but the number of GPUs, fewest first. The first has one GPU."""

    task: str
    library: str  # with the minibatch rule where a task has both
    mode: Mode
    num_envs: int  # of each GPU, or of all
    machine: str  # its name, which no other machine of its version has
    gpu: str  # model, without its maker
    versions: Mapping[str, str]  # package -> version that ran; several are joined by commas
    series: str
    points: tuple[Point, ...]

    @property
    def work(self) -> str:
        """Such as ``1,024 on each GPU``."""
        return f"{self.num_envs:,} {'on each GPU' if self.mode == 'own' else 'in all'}"

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Lines of one key do the same on machines with the same GPUs."""
        return self.task, self.library, self.work, self.gpu

    def at(self, gpus: int) -> Point | None:
        return next((point for point in self.points if point.gpus == gpus), None)


def lines(campaign: Campaign, machine_names: Mapping[Environment, str]) -> list[Line]:
    """Return every line of GPUs of a campaign that train as Isaac Lab ships its settings.

    ``machine_names``: of every environment of the campaign.
    """
    kept = {name for name in campaign.series_names if campaign.series(name).kind == "scaling"}
    shipped = [result for result in campaign.results if result.case.series in kept and _counts(result)]
    results = {result.case.case_id: result for result in shipped if not is_twin(result.case)}
    to_rewards = {
        result.case.case_id: time_to_reward(result, reward)
        for _, curve, reward in rewarded_curves(campaign.only(lambda result: result.case.case_id in results))
        for result in curve
        if reward is not None
    }
    return [
        _line(group, results, machine_names, to_rewards)
        for group in scaling_groups(list(results.values()), campaign.model)
        if len(group.measured) > 1 and group.baseline.times_s and group.baseline.world_size == 1
    ]


def in_order(found: Sequence[Line]) -> tuple[Line, ...]:
    """Lines of several campaigns by task, mode and library, without the minibatch rule where it distinguishes none."""
    plain = [without_needless_rule(line, found) for line in found]
    return tuple(sorted(plain, key=lambda line: (line.task, line.mode, line.library, line.num_envs, line.machine)))


def _counts(result: CaseResult) -> bool:
    """Whether a case trained on GPUs, of any number of nodes, with the settings as Isaac Lab ships them."""
    case = result.case
    return bool(result.completed) and case.learns and (case.device, case.division) == ("cuda", "closed")


def _line(
    group: ScalingGroup,
    results: Mapping[str, CaseResult],
    machine_names: Mapping[Environment, str],
    to_rewards: Mapping[str, TimeToReward],
) -> Line:
    case = results[group.baseline.case_id].case
    place = max(places([results[point.case_id] for point in group.measured]), key=lambda each: each.num_rounds)
    return Line(
        task=task_name(case.task),
        library=f"{case.rl_library}, {RULES[case.minibatch_rule]}",
        mode=MODES[group.scaling],
        num_envs=case.num_envs,
        machine=machine_names[place.environment],
        gpu=gpu_name(place.environment) or "GPU",
        versions=place.versions,
        series=group.series,
        points=tuple(
            replace(
                _point(point, results[point.case_id].case, speedup),
                to_reward=to_rewards.get(point.case_id),
            )
            for point in group.measured
            if (speedup := BASELINE_SPEEDUP if point is group.baseline else point.speedup) is not None
        ),
    )


def _point(point: ScalingPoint, case: Case, speedup: Estimate) -> Point:
    time_s = mean_of(list(point.times_s.values()))
    return Point(
        case=case,
        gpus=point.world_size,
        fps=time_s.mapped(lambda value: point.frames_per_iteration / value),
        speedup=speedup,
        runs=len(point.times_s),
    )


def without_needless_rule(line: Line, all_lines: Sequence[Line]) -> Line:
    """Return the line without its minibatch rule if lines of its task, library and mode have only one."""
    library = line.library.partition(", ")[0]
    alike = [each for each in all_lines if (each.task, each.mode) == (line.task, line.mode)]
    rules = {each.library for each in alike if each.library.partition(", ")[0] == library}
    return line if len(rules) > 1 else replace(line, library=library)
