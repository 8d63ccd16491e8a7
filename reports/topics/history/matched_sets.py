"""Campaigns that have one name in two versions, compared case by case. Pure."""

from reports.sets.version import ResultSet, Version
from reports.topics.history.comparison import Comparison, compare


def matched_sets(version: Version) -> tuple[tuple[ResultSet, ResultSet], ...]:
    """Return each shown campaign that the version before has too: that of the version before, and it."""
    known = {one.name: one for one in version.older[0].sets}
    return tuple((known[one.name], one) for one in version.scaling if one.name in known)


def compared_sets(old: ResultSet, new: ResultSet) -> Comparison | None:
    """Return None if they are of different people."""
    if _whose(old) != _whose(new):
        return None
    noises = [noise for noise in (old.noise, new.noise) if noise is not None]
    return compare(old.campaign.results, new.campaign.results, noise=max(noises, default=None))


def _whose(one: ResultSet) -> str | None:
    return one.contributor.name if one.contributor else None
