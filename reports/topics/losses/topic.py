"""Where the time is lost."""

from collections.abc import Sequence
from typing import Final

from reports.analysis.analysed_set import Campaign, has_one_size, shared_kind
from reports.display.html import Html, paragraph
from reports.display.topic import Page, SeriesPart, Topic, speeds_and
from reports.sets.version import Version
from reports.topics.losses import losses_page
from reports.topics.losses.controls import is_part
from reports.topics.losses.findings_page import card, has_findings

BESIDE: Final = (
    "The same part in training, with as many environments on each rank; a gradient has the same size with any number of"
    " them. Machines differ: compare times within a machine; compare growth over GPUs anywhere. A time is that of the"
    " slowest rank. An all-reduce is that of one optimiser step, on the rank that waited least."
)


def _lost(_: Version, parts: Sequence[Campaign]) -> Sequence[Html]:
    """Of a series that trains and scales."""
    trains = any(part.is_training for part in parts)
    scales = trains and shared_kind(parts) in {"scaling", "start_up"} and not has_one_size(parts)
    return [losses_page.of_series(parts)] if scales else []


def _beside_training(version: Version, parts: Sequence[Campaign]) -> Sequence[Html]:
    """Of a test of a part that training has too."""
    if any(part.is_training for part in parts) or not is_part(parts[0].results[0].case):
        return []
    return [paragraph(BESIDE), losses_page.beside_training(version, parts[0])]


TOPIC: Final = Topic(
    pages=(Page(text="findings", is_shown=speeds_and(has_findings), card=card),),
    series_parts=(
        SeriesPart(after="Where the time goes", shown=_lost),
        SeriesPart(after="What was measured", title="Beside training", shown=_beside_training),
    ),
)
