"""Stacks, nodes, clocks and publications beside these results."""

from typing import Final

from reports.display.topic import COMPARED, Page, Topic, has_speeds, speeds_and
from reports.topics.others.pairs_page import has_nodes

TOPIC: Final = Topic(
    pages=(
        Page(text="published", part=COMPARED, is_shown=has_speeds),
        Page(text="stacks", part=COMPARED, is_shown=speeds_and(lambda version: version.has_stacks)),
        Page(text="nodes", part=COMPARED, is_shown=speeds_and(has_nodes)),
        Page(text="clock", part=COMPARED, is_shown=lambda version: version.pairs),
        Page(text="foreign", part=COMPARED, is_shown=lambda version: version.foreign),
    )
)
