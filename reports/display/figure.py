"""A chart as the page shows it: a static SVG, the Vega-Lite spec that replaces it when seen, words, and the data.

The SVG is what print, a reader without JavaScript and a screen reader get. Both halves come from one spec, and nothing
in them is random, so the same results give the same bytes.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Final

import vl_convert

from reports.display.html import Html

STATIC_WIDTH_PX: Final = 640
LICENCE: Final = "CC-BY-4.0"  # of data and text
INK, MUTED_INK, RULE = "#111827", "#374151", "#6b7280"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif"
CONFIG: Mapping[str, Any] = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": 600,
        "labelColor": MUTED_INK,
        "titleColor": INK,
        "domainColor": RULE,
        "tickColor": RULE,
        "gridColor": "#e3e6ea",
    },
    "legend": {
        "orient": "top",
        "labelFontSize": 12,
        "labelColor": MUTED_INK,
        "columnPadding": 16,
        "layout": {"top": {"anchor": "start", "direction": "vertical", "margin": 4}},  # two do not fit a phone
    },
}
# The static figure is drawn with Liberation Sans (book/fonts.conf) and read with the reader's font, which may be wider.
PADDING: Mapping[str, int] = {"left": 24, "right": 12, "top": 4, "bottom": 4}

# Most of a drawing's bytes: the picture as a whole has a label, so its parts need none.
_UNSEEN: Final = re.compile(r' (?:aria-[a-z]+|role|pointer-events|class|version|xmlns:xlink|font-family)="[^"]*"')


def make_figure(chart: Mapping[str, Any], *, figure_id: str, data: Html) -> Html:
    """``chart``: a Vega-Lite spec as wide as its container, of the version that its ``$schema`` says.

    ``figure_id`` is unique on the site.
    """
    spec = {"padding": PADDING, **chart, "config": CONFIG}
    # "</" would end the script element early. The theme moves the spec into a script of its own.
    script = json.dumps(spec, separators=(",", ":")).replace("<", "\\u003c")
    markup = (
        f'<figure class="vega-figure" id="{figure_id}">'
        f'<div class="vega-static">{_static_svg(spec)}</div>'
        f'<script type="application/json">{script}</script>'
        f"<figcaption><details><summary>Data of this figure</summary>{data.markup}</details></figcaption>"
        "</figure>"
    )
    return Html(markup=markup, text=chart["description"])


def source_line(version: str, machines: Iterable[str]) -> str:
    """Return what a chart says of its values: which report, which machines, from which day, and the licence."""
    return f"labscale {version} \u00b7 {'; '.join(dict.fromkeys(machines))} \u00b7 {LICENCE}"


def vega_lite_version(schema: str) -> str:
    """``6.4`` of ``…/v6.4.1.json``, as vl-convert names it."""
    major, minor, *_ = schema.rpartition("/")[2].removeprefix("v").split(".")
    return f"{major}.{minor}"


def _static_svg(spec: Mapping[str, Any]) -> str:
    drawn = json.dumps({**spec, "width": STATIC_WIDTH_PX}, separators=(",", ":"))
    label = f'<svg role="img" aria-label="{html.escape(spec["description"])}" font-family="{FONT}" '
    return _drawn(drawn, vega_lite_version(spec["$schema"])).replace("<svg ", label, 1)


@cache
def _drawn(spec: str, version: str) -> str:
    """Draw a spec once: some charts stand on two pages. ``spec``: its JSON."""
    svg: str = vl_convert.vegalite_to_svg(spec, vl_version=version)
    return _UNSEEN.sub("", svg)
