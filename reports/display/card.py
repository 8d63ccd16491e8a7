"""A card of the first page: what a topic found, in a title, a sentence and a few bars. Pure."""

import html
from collections.abc import Mapping
from dataclasses import dataclass

from reports.display.html import Html


@dataclass(frozen=True, kw_only=True)
class Card:
    title: str
    text: str  # condition and certainty of the title
    bars: Mapping[str, tuple[float, str]]  # label -> length, 1 is the longest, and its text
    link: str  # what the page behind it is called
    address: str


def cards(found: list[Card]) -> Html:
    """Show cards side by side; nothing without any."""
    if not found:
        return Html(markup="", text="")
    markup = "".join(map(_markup, found))
    return Html(
        markup=f'<div class="cards">{markup}</div>', text="\n".join(f"{card.title}. {card.text}" for card in found)
    )


def _markup(card: Card) -> str:
    bars = "".join(
        f"<li><span>{html.escape(label)} <b>{html.escape(said)}</b></span>"
        f'<i style="width:{max(0.5, 100 * length):.1f}%"></i></li>'
        for label, (length, said) in card.bars.items()
    )
    return (
        f"<article><h3>{html.escape(card.title)}</h3><p>{html.escape(card.text)}</p>"
        + (f"<ul>{bars}</ul>" if bars else "")
        + f'<a href="{html.escape(card.address)}">{html.escape(card.link)}</a></article>'
    )
