"""What the sections of *Findings* say besides figures.json. Pure."""

import statistics
from collections.abc import Mapping

from reports.analysis.learned import Learned
from reports.analysis.seeds import seeds
from reports.display.topic import Figures
from reports.sets.version import Version
from reports.topics.losses import findings
from reports.topics.losses.controls import parts_alone
from reports.topics.losses.findings import Filling, Places


def findings_figures(version: Version) -> Mapping[str, Figures]:
    """Return what it is said of -> figures, of every section."""
    sections = (_iterations, _sizes, _parts_alone, _places, _rewards)
    return {of: figures for section in sections for of, figures in section(version).items()}


def _iterations(version: Version) -> Mapping[str, Figures]:
    splits = {
        f"{one.name}: {split.case_id}: iteration": split
        for one in version.scaling
        for split in findings.splits(one.campaign)
    }
    found: dict[str, Figures] = {
        of: {
            "rollout": split.rollout,
            "learning": split.learning,
            "between_ranks": split.between_ranks,
            "power_w_of_a_gpu": split.power_w,
        }
        for of, split in splits.items()
    }
    if alone := findings.on_one_gpu(splits.values()):
        found["every iteration on one GPU"] = {
            "cases": alone.cases,
            "least_learning": alone.least_learning,
            "most_learning": alone.most_learning,
            "learn_more_than_half": alone.learn_more_than_half,
            "least_busy": _share(alone.least_busy_percent),
            "most_busy": _share(alone.most_busy_percent),
        }
    return found


def _share(percent: float | None) -> float | None:
    return None if percent is None else percent / 100


def _sizes(version: Version) -> Mapping[str, Figures]:
    found: dict[str, Figures] = {}
    every = [(one.name, sweep) for one in version.scaling for sweep in findings.sweeps(one.campaign)]
    for name, sweep in every:
        for sizes in findings.fillings(sweep):
            found |= {f"{name}: {size.case_id}: size": _size(size) for size in sizes}
            half = findings.with_half_of_most(sizes)
            of = f"{name}: {sweep.rows[0].series}: {sizes[0].who}"
            found[of] = {"environments_with_half_of_most": half and half.num_envs}
    return found


def _size(size: Filling) -> Figures:
    return {"step_of_most": size.of_most.get("step"), "total_of_most": size.of_most.get("total")}


def _parts_alone(version: Version) -> Mapping[str, Figures]:
    sets = version.scaling
    return {
        f"{sets[each.set_index].name}: {each.case.case_id}: {part.workload}": {
            "time_s": each.time_s,
            "times_fewest": each.times_fewest,
        }
        for part in parts_alone([one.campaign.results for one in sets])
        for each in part.timed
    }


def _places(version: Version) -> Mapping[str, Figures]:
    places = findings.places_of_version(version)
    if not places:
        return {}
    found: dict[str, Figures] = {f"{one.case_id} on {one.gpus}": _place(one) for one in places}
    found["every training in several places"] = {
        "trainings": len(places),
        "least": places[-1].ratio,
        "most": places[0].ratio,
        "perhaps_beside": sum(one.is_least for one in places),
    }
    return found


def _place(one: Places) -> Figures:
    return {
        "slowest": one.slowest,
        "frames_per_s_of_slowest": one.fps[one.slowest],
        "quickest": one.quickest,
        "frames_per_s_of_quickest": one.fps[one.quickest],
        "times": one.ratio,
        "places": len(one.fps),
        "is_perhaps_beside": one.is_least,
    }


def _rewards(version: Version) -> Mapping[str, Figures]:
    of_seeds = seeds(version.learned, (), lambda _: ())
    return {
        f"{one.name}: {each.case_id}: reward": _reward(each)
        for one in version.scaling
        for curve in findings.learned_in_strong_scaling(one.campaign, of_seeds)
        for each in curve
    }


def _reward(each: Learned) -> Figures:
    return {
        "reward": each.reward,
        "other_seeds": len(each.of_seeds),
        "worst_of_other_seeds": min(each.of_seeds, default=None),
        "median_of_other_seeds": statistics.median(each.of_seeds) if each.of_seeds else None,
        "best_of_other_seeds": max(each.of_seeds, default=None),
    }
