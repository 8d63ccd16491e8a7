"""What *Deterministic settings* says besides figures.json. Pure."""

from collections.abc import Mapping

from reports.display.topic import Figures, with_interval
from reports.sets.version import Version
from reports.topics.determinism.model import Pair, Repeats, equal_cases, pairs, range_of_longer


def determinism_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and deterministic case, and ``all`` -> figures."""
    found = {
        f"{one.name}: {pair.deterministic.case.case_id}": pair
        for one in version.scaling
        for pair in pairs(one.campaign.results)
    }
    if not found:
        return {}
    every = [*found.values()]
    least, most = range_of_longer(every) or (None, None)
    shipped, deterministic = equal_cases(every)
    over_all = {
        "least_ratio": least,
        "most_ratio": most,
        "compared_cases_as_shipped": shipped.cases,
        "equal_cases_as_shipped": shipped.equal,
        "compared_cases_deterministic": deterministic.cases,
        "equal_cases_deterministic": deterministic.equal,
    }
    return {**{of: _figures(pair) for of, pair in found.items()}, "all": over_all}


def _figures(pair: Pair) -> Figures:
    (shipped_s, deterministic_s), (shipped, deterministic) = pair.times_s, pair.repeats
    return {
        "compared_with": pair.shipped.case.case_id,
        **with_interval("as_shipped_s", shipped_s),
        **with_interval("deterministic_s", deterministic_s),
        **with_interval("ratio", pair.longer),
        **_repeats("as_shipped", shipped),
        **_repeats("deterministic", deterministic),
    }


def _repeats(name: str, found: Repeats | None) -> Figures:
    return {
        f"{name}_runs_of_one_seed": found and found.runs,
        f"{name}_outcomes": found and found.outcomes,
        f"{name}_rewards_differ_from_iteration": found and found.differ_from,
    }
