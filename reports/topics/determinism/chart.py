"""How much longer a deterministic iteration takes, one line for each case. Pure."""

from collections.abc import Mapping, Sequence

from reports.analysis.analysed_set import Campaign
from reports.display.charts.ratios import ratio_lines
from reports.display.figure import Figure
from reports.display.html import Html
from reports.topics.determinism.model import Pair


def drawn(campaign: Campaign, found: Sequence[Pair], names: Mapping[str, str], *, data: Html) -> Figure:
    """``names``: case id of the deterministic case -> its label. One of ``found`` at least is measured."""
    measured = {pair.deterministic.case.case_id: pair.longer for pair in found if pair.longer}
    return ratio_lines(
        campaign,
        {names[case_id]: (case_id, longer) for case_id, longer in measured.items()},
        chart="deterministic",
        title="Times as long as shipped",
        said="Time of a deterministic iteration over that of the same case as shipped.",
        data=data,
    )
