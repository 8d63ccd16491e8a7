"""How much longer a deterministic iteration takes, one line for each case. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from reports.analysis.analysed_set import Campaign
from reports.display.charts.drawing import CASE_LABEL_LIMIT, PALETTE, RULE_DASH, figure, inline, tip
from reports.display.figure import RULE, Figure
from reports.display.html import Html
from reports.topics.determinism.model import Pair

ROW_PX: Final = 44


def drawn(campaign: Campaign, found: Sequence[Pair], names: Mapping[str, str], *, data: Html) -> Figure:
    """``names``: case id of the deterministic case -> its label. One of ``found`` at least is measured."""
    points = [_point(names, pair) for pair in found if pair.longer]
    axis = alt.Axis(labelLimit=alt.ExprRef(CASE_LABEL_LIMIT), ticks=False, grid=True, domain=False)
    y = alt.Y("name:N", sort=[point["name"] for point in points], title=None, axis=axis)
    x = alt.X("value:Q", title="Times as long as shipped", scale=alt.Scale(zero=True), axis=alt.Axis(tickCount=6))
    base = alt.Chart(inline(points)).encode(y=y, color=alt.value(PALETTE[0]))
    tooltip = [
        tip("case_id:N", "Case"),
        tip("value:Q", "Times as long", ".3g"),
        tip("low:Q", "Interval from", ".3g"),
        tip("high:Q", "to", ".3g"),
    ]
    line = alt.Chart(inline([{}])).mark_rule(color=RULE, strokeDash=RULE_DASH).encode(x=alt.datum(1))
    words = "; ".join(f"{point['name']}: {point['value']:.2f}" for point in points)
    return figure(
        [
            line,
            base.mark_point(filled=True, size=80).encode(x=x, tooltip=tooltip),
            base.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
            base.mark_text(dy=-12, fontSize=12, fontWeight=600).encode(x=x, text=alt.Text("value:Q", format=".2f")),
        ],
        campaign,
        chart="deterministic",
        height=ROW_PX * len(points),
        alt_text=f"Time of a deterministic iteration over that as shipped. {words}.",
        caption="Time of a deterministic iteration over that of the same case as shipped, dashed. Whiskers: intervals,"
        " where rounds are enough.",
        data=data,
    )


def _point(names: Mapping[str, str], pair: Pair) -> dict[str, Any]:
    if pair.longer is None:
        raise AssertionError("only measured pairs are drawn")
    low, high = pair.longer.interval or (pair.longer.value, pair.longer.value)
    case_id = pair.deterministic.case.case_id
    return {"name": names[case_id], "case_id": case_id, "value": pair.longer.value, "low": low, "high": high}
