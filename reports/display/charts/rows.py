"""Rows below each other, each with its name above its mark, so that a long name fits a phone too. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import altair as alt

from reports.display.charts.drawing import CHARACTERS, FONT_PX, LINE_PX, inline, wrapped
from reports.display.figure import INK


@dataclass(frozen=True, kw_only=True)
class Rows:
    """``marks_px``: the middle of each row's mark, from the top of the plot."""

    names_in_lines: Sequence[Sequence[str]]
    tops_px: Sequence[int]
    marks_px: Sequence[float]
    height_px: int

    @classmethod
    def of(cls, names: Sequence[str], mark_px: int) -> Self:
        """Return a row of each name, with a mark so high below it."""
        in_lines = [wrapped(name, CHARACTERS[0]) for name in names]
        heights = [LINE_PX * len(lines) + mark_px for lines in in_lines]
        *tops, height = accumulate(heights, initial=0)
        marks = [top + own - mark_px / 2 for top, own in zip(tops, heights, strict=True)]
        return cls(names_in_lines=in_lines, tops_px=tops, marks_px=marks, height_px=height)

    def encoding(self) -> alt.Y:
        """Encode the field ``place``, pixels from the top."""
        return alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[self.height_px, 0], nice=False, zero=False))

    def names(self) -> alt.Chart:
        """Draw the name of every row."""
        values = (
            {"place": top + 2, "name": "\n".join(lines)}
            for top, lines in zip(self.tops_px, self.names_in_lines, strict=True)
        )
        text = alt.Chart(inline(values)).mark_text(
            align="left", baseline="top", fontSize=FONT_PX, lineBreak="\n", lineHeight=LINE_PX, color=INK
        )
        drawn: alt.Chart = text.encode(x=alt.value(0), y=self.encoding(), text="name:N")
        return drawn
