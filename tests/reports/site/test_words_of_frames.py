"""Frames are not learning: no sentence says "sooner" of them, in README.md, in the guide, on a page or in a finding."""

import re

import pytest

from suite.files.paths import ROOT

OF_TIME = re.compile(r"\b(sooner|soonest|times as soon|time matters|saves? time)\b", re.IGNORECASE)
OF_LEARNING = re.compile(r"reward|learn", re.IGNORECASE)
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "OWN_TASK.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "book").rglob("*.md")),
    *sorted((ROOT / "reports" / "pages").glob("*.md")),
    *sorted((ROOT / "reports" / "results").glob("*/findings.toml")),
]


def said_of_frames(text: str) -> list[str]:
    sentences = re.split(r"(?<=[.?!])\s+|\n\s*\n|\n- ", text)
    return [sentence for sentence in sentences if OF_TIME.search(sentence) and not OF_LEARNING.search(sentence)]


def test_no_document_says_sooner_of_frames() -> None:
    """What cells show: ``test_numbers``."""
    assert {path.name for path in DOCUMENTS} >= {"README.md", "first-run.md", "home.md", "findings.toml"}
    assert [(path.name, text) for path in DOCUMENTS for text in said_of_frames(path.read_text(encoding="utf-8"))] == []


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
