"""What is said of which number of GPUs and of environments to take, besides figures.json. Pure."""

import statistics
from collections.abc import Iterator, Mapping
from itertools import chain

from reports.analysis.analysed_set import Campaign
from reports.analysis.scaling.answer import cheapest_and_most_frames
from reports.analysis.scaling.scaling_groups import ScalingGroup, scaling_groups
from reports.analysis.time_split import Inside, Values
from reports.analysis.time_to_reward import rewarded_curves, time_to_reward
from reports.display.topic import Figures, with_interval
from reports.sets.version import ResultSet, Version
from reports.topics.cost.card import choice_of_card
from reports.topics.cost.model import Choice, Option, choice
from reports.topics.cost.sizes import Size, SizeChoice, size_choices
from suite.schema.record import CaseResult
from suite.statistics.intervals import MIN_ROUNDS_FOR_INTERVAL


def choosing_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and curve, sizes or case -> figures; ``all`` of the answer of the page, and ``card``."""
    of_sets = {
        f"{one.name}: {of}": figures
        for one in version.scaling
        for of, figures in chain(_curves(one.campaign), _sizes(one.campaign), _rewards(one.campaign))
    }
    cheap, quick = cheapest_and_most_frames(version.lines)
    answer = {"trainings": len(version.lines), "cheapest_on_one_gpu": cheap, "soonest_on_most_gpus": quick}
    card = choice_of_card(version)
    return {
        **({"all": answer} if version.lines else {}),
        **({"card": _card(*card)} if card else {}),
        **of_sets,
    }


def _card(one: ResultSet, found: SizeChoice) -> Figures:
    return {"sizes_of": f"{one.name}: {_of_sizes(found)}", "rounds": sorted({size.rounds for size in found.sizes})}


# --- numbers of ranks ---


def _curves(campaign: Campaign) -> Iterator[tuple[str, Figures]]:
    for series in _trained(campaign, "scaling"):
        for group in scaling_groups(series.with_twins):
            found = choice(group)
            if found is not None:
                yield f"curve from {group.baseline.case_id}", {**_choice(found), "with_repeat": _with_repeat(group)}


def _trained(campaign: Campaign, kind: str) -> list[Campaign]:
    trained = campaign.only(lambda result: result.case.learns)
    return [part for part in map(trained.series, trained.series_names) if part.kind == kind]


def _with_repeat(group: ScalingGroup) -> Figures | None:
    twin = group.from_twin
    found = None if twin is None or len(twin.baseline.times_s) < MIN_ROUNDS_FOR_INTERVAL else choice(twin)
    return None if found is None else _choice(found)


def _choice(found: Choice) -> Figures:
    return {
        "soonest_ranks": found.fastest.world_size,
        "cheapest_ranks": found.cheapest.number,
        "cheapest_is": found.cheapest.word,
        "worth_adding_ranks": found.knee and found.knee.number,
        "worth_adding_is": found.knee and found.knee.word,
        "options": {str(option.world_size): _option(option) for option in found.options},
    }


def _option(option: Option) -> Figures:
    return {
        **with_interval("gpu_hours_over_fewest", option.over_cheapest),
        **with_interval("worth_of_added", option.worth),
        "start_up_s": option.start_up_s,
    }


# --- numbers of environments ---


def _sizes(campaign: Campaign) -> Iterator[tuple[str, Figures]]:
    for series in map(campaign.series, campaign.series_names):
        for found in size_choices(series.results) if series.is_sweep else ():
            sizes = {size.case_id: _size(size, series.inside[size.case_id]) for size in found.sizes}
            yield _of_sizes(found), {"enough": found.enough.number, "enough_is": found.enough.word, "sizes": sizes}


def _of_sizes(found: SizeChoice) -> str:
    return f"sizes from {found.sizes[0].case_id}"


def _size(size: Size, found: Inside) -> Figures:
    joules = found.joules_per_million_frames
    return {
        **with_interval("of_most", size.of_most),
        "gpu_memory_gb": _median(found.gpu_memory_gb),
        "torch_memory_gb": _median(found.peak_memory_gb),
        "frames_per_joule": None if joules is None else 1e6 / joules.median,
    }


def _median(values: Values | None) -> float | None:
    return None if values is None else values.median


# --- time to a reward ---


def _rewards(campaign: Campaign) -> Iterator[tuple[str, Figures]]:
    for series in _trained(campaign, "scaling"):
        for _, results, reward in rewarded_curves(series):
            if reward is not None:
                yield from ((one.case.case_id, _reward(one, reward)) for one in results)


def _reward(result: CaseResult, reward: float) -> Figures:
    found = time_to_reward(result, reward)
    iterations = [number for number in found.round_iterations.values() if number is not None]
    return {
        "reward": found.reward,
        "iterations_to_reward": statistics.median(iterations) if iterations else None,
        "seconds_to_reward": found.time_s,
        "seconds_to_reward_interval": found.interval_s and [*found.interval_s],
        "rank_seconds_to_reward": found.of_all_ranks_s(result.case.world_size),
    }
