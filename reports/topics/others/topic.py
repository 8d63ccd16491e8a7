"""Stacks, nodes, clocks and publications beside these results."""

from collections.abc import Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign
from reports.display.html import Html
from reports.display.topic import COMPARED, Page, SeriesPart, Topic, has_speeds, speeds_and
from reports.sets.version import Version
from reports.topics.others import published_page
from reports.topics.others.pairs_page import has_nodes


def _published(version: Version, parts: Sequence[Campaign]) -> Sequence[Html]:
    shown = published_page.of_series(version, parts[0].rows[0].series)
    return [shown] if shown.markup else []


TOPIC: Final = Topic(
    pages=(
        Page(text="published", part=COMPARED, is_shown=has_speeds),
        Page(text="stacks", part=COMPARED, is_shown=speeds_and(lambda version: version.has_stacks)),
        Page(text="nodes", part=COMPARED, is_shown=speeds_and(has_nodes)),
        Page(text="clock", part=COMPARED, is_shown=lambda version: version.pairs),
    ),
    series_parts=(SeriesPart(after="Remarks on the rounds", title="What others published", shown=_published),),
)
