"""The list of pages.

Each is a text in ``book/`` whose cells call a topic. Without its line in ``PAGES`` there is no such page.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from reports.display.addresses import page_of_gpu, page_of_task
from reports.display.card import Card, cards
from reports.display.html import Html, heading, together
from reports.sets.version import Version
from reports.site import guide, series
from reports.topics.cost.card import card as cost_card
from reports.topics.hardware.gpu_page import gpu_models
from reports.topics.losses.card import card as losses_card
from reports.topics.losses.findings_page import has_findings
from reports.topics.others.pairs_page import has_nodes
from reports.topics.tasks.overview import tasks
from reports.topics.trust.turns_page import has_check
from reports.topics.tuning.card import card as tuning_card
from reports.topics.tuning.learning_page import has_seeds
from suite.files.paths import ROOT

BOOK: Final = ROOT / "book"

type Texts = Mapping[str, str]  # name of a page -> its MyST text


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page, or pages that are made from one text."""

    text: str  # the file in ``book/``, without its ending
    part: str | None = None  # heading in the contents; None: above all parts
    is_shown: Callable[[Version], object]  # its truth counts
    made: Callable[[Version], Texts] | None = None  # None: one page, named as its text, or ``name``
    name: str | None = None
    card: Callable[[Version], Card | None] | None = None  # what it has on the first page

    def texts(self, version: Version) -> Texts:
        """Return its pages of this version; empty if it is not shown."""
        if not self.is_shown(version):
            return {}
        return self.made(version) if self.made else {self.name or self.text: read_text(self.text)}


def read_text(name: str) -> str:
    return (BOOK / f"{name}.md").read_text(encoding="utf-8")


def _has_speeds(version: Version) -> bool:
    """Whether numbers of ranks may be compared. Where not, no page speaks of speed."""
    return bool(version.scaling) or not version.without_speeds


def _only_works(version: Version) -> bool:
    return not _has_speeds(version)


def _speeds_and(condition: Callable[[Version], object]) -> Callable[[Version], object]:
    return lambda version: _has_speeds(version) and condition(version)


def _is_tuned(version: Version) -> bool:
    return version.has_open_division


def _tasks(version: Version) -> Texts:
    """One page for each task, with a section for each of its series."""
    template = string.Template(read_text("task"))
    return {
        page_of_task(task): template.substitute(title=task.replace('"', "'"), series=series.markdown(version, task))
        for task in tasks(version)
    }


def _hardware(version: Version) -> Texts:
    """One page for each GPU model, and one for machines without."""
    template = string.Template(read_text("hardware"))
    return {page_of_gpu(model): template.substitute(model=model.replace('"', "'")) for model in gpu_models(version)}


SIDES: Final = "Compared"
HARDWARE: Final = "Hardware"
HISTORY: Final = "History"
ABOUT: Final = "How we measure"
PAGES: Final = (
    Page(text="index", is_shown=_has_speeds),
    Page(text="worked", name="index", is_shown=_only_works),
    Page(text="choosing", is_shown=_has_speeds, card=cost_card),
    Page(text="explore", is_shown=_has_speeds),
    Page(text="curves", is_shown=_has_speeds),
    Page(text="findings", is_shown=_speeds_and(has_findings), card=losses_card),
    Page(text="task", part="Tasks", is_shown=_has_speeds, made=_tasks),
    Page(text="support", part=HARDWARE, is_shown=_has_speeds),
    Page(text="machines", part=HARDWARE, is_shown=lambda _: True),
    Page(text="hardware", part=HARDWARE, is_shown=_has_speeds, made=_hardware),
    Page(text="published", part=SIDES, is_shown=_has_speeds),
    Page(text="stacks", part=SIDES, is_shown=_speeds_and(lambda version: version.has_stacks)),
    Page(text="nodes", part=SIDES, is_shown=_speeds_and(has_nodes)),
    Page(text="clock", part=SIDES, is_shown=lambda version: version.pairs),
    Page(text="division", part=SIDES, is_shown=_speeds_and(_is_tuned), card=tuning_card),
    Page(text="learning", part=SIDES, is_shown=has_seeds),
    Page(text="foreign", part=SIDES, is_shown=lambda version: version.foreign),
    Page(text="history", part=HISTORY, is_shown=_speeds_and(lambda version: version.older)),
    Page(text="turns", part=ABOUT, is_shown=_speeds_and(has_check)),
    Page(text="archive", part=ABOUT, is_shown=_speeds_and(lambda version: version.archived)),
    Page(text="methodology", part=ABOUT, is_shown=_has_speeds),
    Page(text="limits", part=ABOUT, is_shown=lambda _: True),
    Page(text="data", part=ABOUT, is_shown=lambda _: True),
)


def page_sources(version: Version) -> dict[str, str]:
    """Name of every page of this version -> its MyST text, in the order of the contents."""
    return {name: text for page in PAGES for name, text in page.texts(version).items()}


def contents(version: Version) -> list[dict[str, Any]]:
    """The contents as Jupyter Book reads them: pages above all parts, then the parts, then how to run labscale."""
    parts: dict[str | None, list[str]] = {}
    for page in PAGES:
        parts.setdefault(page.part, []).extend(page.texts(version))
    parts["Run it"] = list(guide.PAGES)
    first = parts.pop(None)
    return [*_files(first), *({"title": part, "children": _files(names)} for part, names in parts.items() if names)]


def found_elsewhere(version: Version) -> Html:
    """The cards of all pages that are shown and have one."""
    found = [page.card(version) for page in PAGES if page.card and page.is_shown(version)]
    shown = [card for card in found if card is not None]
    return together([heading("What else the measurements show", depth=2), cards(shown)]) if shown else cards([])


def _files(names: Sequence[str]) -> list[dict[str, str]]:
    return [{"file": f"{name}.ipynb"} for name in names]


def page_files(version: Version) -> tuple[str, ...]:
    """Return the file names of all pages of this version."""
    return tuple(f"{name}.html" for name in (*page_sources(version), *guide.PAGES))
