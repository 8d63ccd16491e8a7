"""What the pages of machines say besides figures.json. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from reports.analysis.cost import Cost, timed_points
from reports.analysis.machines import Machine
from reports.analysis.time_split import core_probe_us
from reports.display.topic import Figures
from reports.sets.version import ResultSet, Version
from reports.topics.hardware.env_check import alike_hosts, by_verdict, looked_at, said_of
from reports.topics.hardware.full_core_speed import SharedCase, come_closer, shared_cases_of
from reports.topics.hardware.gpu_page import (
    TRAINED,
    before,
    best_of,
    counts_of,
    gpu_models,
    machines_of,
    of_model,
    runs_on,
    tasks_on,
)
from reports.topics.hardware.models import by_model, only_before
from reports.topics.hardware.page import hosts_of, without_repeat
from reports.topics.hardware.tables import rounds_of_row, rows_of_hosts, started_of_row
from suite.schema.record import CheckResult
from suite.statistics.aa_noise import TwinPair
from suite.statistics.core_speed import SlowedCores
from suite.statistics.reduce import round_time_s


def machine_figures(version: Version) -> Mapping[str, Figures]:
    """Return figures of A/A pairs, slowed cores, interference tests and costs by set, and of cases on many machines."""
    said = {of: figures for one in version.sets for of, figures in _of_set(one).items()}
    costs = {one.name: found for one in version.shown if (found := one.campaign.cost)}
    said |= {f"{name}: cost": _cost(found) for name, found in costs.items()}
    timed, points = timed_points(costs.values())
    said["every cost"] = {"points": points, "points_with_timed_loop": timed}
    said |= {f"{one.name}: rounds by machine": _rounds(version, one) for one in version.sets}
    said["sets without a repeat"] = _without_repeat(version)
    said["sets with slowed cores"] = {"sets": len(version.slowed_cores), "of_sets": version.totals.sets}
    return {**said, **_shared(version), **_env_checks(version), "machines": asdict(looked_at(version.machines))}


def hardware_figures(version: Version) -> Mapping[str, Figures]:
    """Return figures of each GPU model: the most frames of a task, and its cases on several machines."""
    said: dict[str, Figures] = {}
    for model in gpu_models(version):
        part = of_model(version, model)
        for settings in TRAINED:
            for (_, gpus), (fps, result, _) in best_of(part, settings).items():
                figures = {"frames_per_s": fps, "case_id": result.case.case_id, "runs": len(result.completed)}
                said[f"{model}: {result.case.task}, {gpus} GPUs, {settings}"] = figures
        said |= {f"{model}: {of}": figures for of, figures in _shared(part).items()}
        found = machines_of(part, model)
        said[f"{model}: sets without a repeat"] = _without_repeat(part)
        said[f"{model}: machines"] = asdict(counts_of(part, model)) | asdict(looked_at(found))
        said |= {f"{model}: {machine.slug}": _machine(part, machine) for machine in found}
    return said


def _without_repeat(version: Version) -> Figures:
    return {"sets": without_repeat(version.sets), "of_sets": len(version.sets)}


def _machine(version: Version, machine: Machine) -> Figures:
    return {
        "first_started_utc": machine.first_started_utc,
        "runs": runs_on(machine),
        "tasks": [*tasks_on(version, machine)],
        "env_check": [_checks(each) for each in said_of(machine)],
    }


def _rounds(version: Version, one: ResultSet) -> Figures:
    """Rounds of each row of the table of hosts, by the address of the machine, with their first and last start."""
    said: dict[str, list[Figures]] = {}
    for row in rows_of_hosts(hosts_of(version, one)):
        first, last = started_of_row(row) or (None, None)
        started = {"first_started_utc": first and first.isoformat(), "last_started_utc": last and last.isoformat()}
        said.setdefault(row[0].machine.slug, []).append({"rounds": rounds_of_row(row), **started})
    return said


def _env_checks(version: Version) -> Mapping[str, Figures]:
    """One entry a group of hosts alike, in the order of the page; and one a report beside the results."""
    said: dict[str, Figures] = {}
    for number, hosts in enumerate(alike_hosts(version), start=1):
        where = [f"{one.name}: {version.machine_of(one, place).slug}" for one, place in hosts]
        checks = _checks(hosts[0][1].environment.checks)
        said[f"env_check, {number}"] = {"hosts": len(hosts), "where": where, **checks}
    return said | {f"env_check, {report.name}": _checks(report.checks) for report in version.env_checks}


def _checks(found: Sequence[CheckResult]) -> Figures:
    """Nothing is known without a check: env_check was not part of labscale yet."""
    return {"checks": len(found) or None, "verdicts": by_verdict(found) or None}


def model_figures(version: Version) -> Mapping[str, Figures]:
    """Return GPU model -> what ran on it, of this version."""
    return {model: asdict(ran) for model, ran in by_model(version).items()}


def before_figures(version: Version) -> Mapping[str, Figures]:
    """Return what older versions have of each GPU model of this one, and of those that only they have."""
    found: dict[str, Figures] = {}
    for model in gpu_models(version):
        found |= {f"{model} in {older}": asdict(has) for older, has in before(version, model).items()}
    for model, (older, ran) in only_before(version).items():
        found[f"{model}, only in {older}"] = asdict(ran)
    return found


def _of_set(one: ResultSet) -> Mapping[str, Figures]:
    said = {f"{one.name}: {pair.case_id}": _pair(pair) for pair in one.twin_pairs}
    if found := one.campaign.slowed_cores:
        said[f"{one.name}: slowed cores"] = _slowed(found)
    if test := one.campaign.packing:
        said[f"{one.name}: interference test"] = {
            "iteration_s": [round_time_s(record) for record in test.completed],
            "core_probe_us": [core_probe_us(record) for record in test.completed],
        }
    return said


def _pair(pair: TwinPair) -> Figures:
    runs, twin_runs = len(pair.times_s), len(pair.twin_times_s)
    return {"runs": runs, "twin_runs": twin_runs, "difference": pair.difference, "noise": pair.noise}


def _slowed(found: SlowedCores) -> Figures:
    return {
        "looks": found.looks,
        "slowed": found.slowed,
        "fastest_probes_s": [*found.fastest_s],
        "slower_by": found.slower_by,
        "cases": found.cases,
    }


def _cost(found: Cost) -> Figures:
    ours, loop = found.spent_of_a_point, found.loop_of_a_point
    return {
        "points": found.points,
        "points_with_timed_loop": found.measured_points,
        "in_use_gpu_minutes_of_a_point": ours.in_use,
        "in_use_gpu_minutes_of_a_point_of_the_loop": loop.in_use,
        "in_use_ratio": found.in_use_ratio,
        "host_gpu_minutes_of_a_point": ours.host,
        "host_gpu_minutes_of_a_point_of_the_loop": loop.host,
        "host_ratio": found.host_ratio,
    }


def _shared(version: Version) -> Mapping[str, Figures]:
    found = shared_cases_of(version)
    if not found:
        return {}
    closer = come_closer(found)
    over_all = {
        "cases": len(found),
        "most_apart": found[0].apart,
        "cases_with_both": closer and closer.cases,
        "median_apart": closer and closer.plain,
        "median_apart_at_full_speed": closer and closer.full,
        "closer_cases": closer and closer.closer,
        "closer_by_chance": closer and closer.by_chance,
    }
    return {**{f"{one.case.case_id}, {one.gpus}": _case(one) for one in found}, "cases on several machines": over_all}


def _case(one: SharedCase) -> Figures:
    """Columns have one value of each machine, the quickest first."""
    full = [machine.full for machine in one.machines]
    return {
        "apart": one.apart,
        "machines": [machine.label for machine in one.machines],
        "runs": [machine.rounds for machine in one.machines],
        "iteration_s": [machine.iteration_s for machine in one.machines],
        "full_speed_iteration_s": [machine.full_s for machine in one.machines],
        "full_speed_iterations": [each and each.iterations for each in full],
        "counted_iterations": [each and each.counted for each in full],
        "fastest_probe_s": [machine.fastest_probe_s for machine in one.machines],
    }
