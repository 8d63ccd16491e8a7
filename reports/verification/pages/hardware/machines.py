"""*Machines* and the pages of GPU models: noise, slowed cores, cases on several machines, costs, most frames."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from reports.verification import formulas
from reports.verification.figures import core_probes
from reports.verification.figures.case_figures import fastest_probes
from reports.verification.figures.series import change_of, short_task, trains, with_cold_starts
from reports.verification.finding import Json
from reports.verification.pages.hardware import counted_machines, said_of_machines, several_machines
from reports.verification.pages.hardware.price import price
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.round_facts import trainings, world_size
from reports.verification.samples.set_folder import StoredSet, noise_of
from reports.verification.samples.stored_version import StoredVersion

WORTH_SAYING: Final = 0.05  # share of looks at slowed cores; fewer are not shown


def figures(version: StoredVersion) -> dict[str, Json]:
    found = {of: row for one in version.sets for of, row in _of_set(one)}
    prices = {f"{one.folder.name}: cost": price(one) for one in version.shown}
    known = {of: row for of, row in prices.items() if row}
    sums = {name: sum(row[name] for row in known.values()) for name in ("points", "points_with_timed_loop")}
    found |= {**known, "every cost": sums}
    found |= {**several_machines.figures(version), **said_of_machines.figures(version)}
    slowed = [f"{one.folder.name}: slowed cores" in found for one in version.with_speeds]
    found["sets without a repeat"] = _without_repeat(version)
    found["sets with slowed cores"] = {"sets": sum(slowed), "of_sets": len(version.sets)}
    return {**found, "machines": counted_machines.counts(counted_machines.machines(version))}


def hardware_figures(version: StoredVersion) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for model in sorted({name for one in version.sets for name in _models(one)}):
        sets = tuple(one for one in version.sets if model in _models(one))
        part = replace(version, sets=sets)
        counts = {
            "machines": counted_machines.counts_of_model(part, model),
            "sets without a repeat": _without_repeat(part),
        }
        rows = {**_most_frames(part), **several_machines.figures(part), **said_of_machines.of_model(part, model)}
        found |= {f"{model}: {of}": row for of, row in {**rows, **counts}.items()}
    return found


def _without_repeat(version: StoredVersion) -> Json:
    return {"sets": sum(not noise_of(one.cases) for one in version.sets), "of_sets": len(version.sets)}


def _of_set(one: StoredSet) -> Iterator[tuple[str, Json]]:
    name = one.folder.name
    for pair in noise_of(one.cases):
        runs = {"runs": len(pair["times_s"]), "twin_runs": len(pair["twin_times_s"])}
        yield f"{name}: {pair['case_id']}", {**runs, "difference": pair["difference"], "noise": pair["noise"]}
    if slowed := _slowed_cores(one):
        yield f"{name}: slowed cores", slowed
    for test in (stored for stored in one.cases if stored.case_id.endswith("-packing")):
        times_s = [test.published_s[record["round"]] for record in test.completed]
        probes_us = [core_probes.probe_us(record) for record in test.completed]
        yield f"{name}: interference test", {"iteration_s": times_s, "core_probe_us": probes_us}


def _slowed_cores(one: StoredSet) -> Json | None:
    """Return what slowed cores did to the cases of a set, its twins and its interference test; None below 5 %."""
    fastest = fastest_probes(one)
    found = slowed_of(one.without_copies, fastest)
    return {**found, "fastest_probes_s": sorted(fastest.values())} if found else None


def slowed_of(cases: Sequence[StoredCase], fastest: Mapping[core_probes.Host, float]) -> Json | None:
    """Return what slowed cores did to some cases; None below 5 % of the looks at their cores."""
    seen = [core_probes.figures(stored.completed, fastest) for stored in cases]
    seen = [each for each in seen if each["core_looks"]]
    looks = sum(each["core_looks"] for each in seen)
    slowed = sum(each["slowed_core_looks"] for each in seen)
    costs = [each["slower_after_slowed_core"] for each in seen if each["slower_after_slowed_core"] is not None]
    if not looks or slowed < WORTH_SAYING * looks:
        return None
    return {
        "looks": looks,
        "slowed": slowed,
        "slower_by": formulas.median_of_known(costs),
        "cases": len(costs),
    }


def _models(one: StoredSet) -> set[str]:
    rounds = [record for stored in one.of_report for record in stored.rounds]
    return {counted_machines.model_of(record["environment"]) for record in rounds}


def _most_frames(version: StoredVersion) -> dict[str, Json]:
    """Return the most frames per second of each task, for each number of GPUs of one node, as shipped and tuned."""
    best: dict[tuple[str, int, str], StoredCase] = {}
    for one in version.with_speeds:
        for stored in _timed_for_speed(one):
            if stored.case.get("division") == "open" and change_of(stored.case) != "tuned":
                continue
            settings = "tuned" if stored.case.get("division") == "open" else "as shipped"
            key = short_task(stored), world_size(stored.case), settings
            if key not in best or stored.frames_per_s > best[key].frames_per_s:
                best[key] = stored
    return {
        f"{stored.case['task']}, {gpus} GPUs, {settings}": {
            "frames_per_s": stored.frames_per_s,
            "case_id": stored.case_id,
            "runs": len(stored.completed),
        }
        for (_, gpus, settings), stored in best.items()
    }


def _timed_for_speed(one: StoredSet) -> Iterator[StoredCase]:
    """Yield each case that trained, once on each GPU of one node, but those of series with cold starts."""
    cold = with_cold_starts(one.of_report)
    for stored in one.in_order:
        is_one_training = trains(stored) and trainings(stored.case) == 1 and stored.case["device"] == "cuda"
        if is_one_training and stored.completed and stored.case["nnodes"] == 1 and stored.case["series"] not in cold:
            yield stored
