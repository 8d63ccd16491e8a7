"""What *Nodes* says besides figures.json: what several nodes cost. Pure."""

from collections.abc import Mapping, Sequence

from reports.analysis.analysed_set import Campaign
from reports.analysis.pairs_of_cases import CasePair, nodes_side_by_side
from reports.display.topic import Figures, with_interval
from reports.sets.version import Version


def node_figures(version: Version) -> Mapping[str, Figures]:
    """Return set and case -> figures, of every case on more nodes than its like, then what the answer says of all."""
    pairs = [
        (one, pair)
        for one in version.scaling
        for series in one.campaign.series_names
        for pair in nodes_side_by_side(one.campaign.series(series).results)
    ]
    found = {f"{one.name}: {pair.case.case.case_id}": _figures(one.campaign, pair) for one, pair in pairs}
    longer = longer_on_nodes([pair for _, pair in pairs])
    said = {"every comparison": _over_all(longer, left_out=len(pairs) - len(longer))} if pairs else {}
    return {**found, **said}


def _over_all(longer: Sequence[float], *, left_out: int) -> Figures:
    least, most = (longer[0], longer[-1]) if longer else (None, None)
    return {"comparisons": len(longer), "left_out": left_out, "least": least, "most": most}


def longer_on_nodes(pairs: Sequence[CasePair]) -> list[float]:
    """Return how much longer iterations take, of the pairs that completed, least first."""
    return sorted(pair.slower_by.value for pair in pairs if pair.slower_by)


def _figures(campaign: Campaign, pair: CasePair) -> Figures:
    share_of = {row.case_id: row.all_reduce_share for row in campaign.rows}
    return {
        "compared_with": pair.base.case.case_id,
        **with_interval("longer_by", pair.slower_by),
        "all_reduce_and_waiting_share": share_of[pair.case.case.case_id],
        "all_reduce_and_waiting_share_of_compared": share_of[pair.base.case.case_id],
    }
