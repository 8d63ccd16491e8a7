"""Frames are not learning: no sentence says "sooner" of them, on a page, in README.md, in the guide or in a finding."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.display.page import text_paths
from suite.files.paths import ROOT
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.runs.published_site import pages_of

OF_TIME = re.compile(r"\b(sooner|soonest|times as soon|time matters|saves? time)\b", re.IGNORECASE)
OF_LEARNING = re.compile(r"reward|learn", re.IGNORECASE)
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "OWN_TASK.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "book").rglob("*.md")),
    *text_paths(),
    *sorted(RESULTS.parent.glob("*/findings.toml")),
]


def said_of_frames(text: str) -> list[str]:
    sentences = re.split(r"(?<=[.?!])\s+|\n\s*\n|\n- ", text)
    return [sentence for sentence in sentences if OF_TIME.search(sentence) and not OF_LEARNING.search(sentence)]


def elements(page: str) -> Iterator[str]:
    """The texts of a page, a paragraph, cell or label each."""
    shown = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    for text in re.split(r"</?(?:p|li|td|th|tr|h\d|div|figcaption|summary|label|option|text)\b[^>]*>", shown):
        yield html.unescape(re.sub(r"<[^>]+>", " ", text))


def test_no_document_says_sooner_of_frames() -> None:
    assert [(path.name, text) for path in DOCUMENTS for text in said_of_frames(path.read_text(encoding="utf-8"))] == []


def test_no_page_says_sooner_of_frames(published_site: Path) -> None:
    pages = pages_of(published_site)
    assert len(pages) > 20
    texts = [(page.name, text) for page in pages for text in elements(page.read_text(encoding="utf-8"))]
    assert [(name, sentence) for name, text in texts for sentence in said_of_frames(text)] == []


@pytest.mark.parametrize(
    ("text", "is_found"),
    [
        ("Use 4 GPUs if time matters, one if cost does: 3.3 times sooner, for 21 % more GPU-hours.", True),
        ("7 finish soonest on the most GPUs. Rewards are below.", True),
        ("A reward of 47.1 comes 1.12 times as soon.", False),
    ],
)
def test_the_rule_finds_what_was_said(text: str, is_found: bool) -> None:
    assert bool(said_of_frames(text)) == is_found
