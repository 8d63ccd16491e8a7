"""Every page counts the same runs and sets: those that are stored."""

import html
import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.fixtures.runs.published_site import NEWER

# Page -> what it says of the whole version; the group is the number of sets or runs.
SAID: Final = {
    "index.html": (r"(?P<runs>[\d,]+) completed runs",),
    "data.html": (r"stored sample of (?P<sets>[\d,]+) sets",),
}


@pytest.fixture(scope="module")
def stored(versions_results: Path) -> dict[str, int]:
    files = [*(versions_results / NEWER).glob("*/cases/*/*.json")]
    rounds = [json.loads(path.read_bytes())["labscale"]["runs"] for path in files]
    completed = [sum(record["outcome"] == "completed" for record in of_case) for of_case in rounds]
    sets = {path.parents[2] for path in files}
    return {"sets": len(sets), "runs": sum(completed)}


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", SAID)
def test_a_page_counts_what_is_stored(published_site: Path, stored: dict[str, int], page: str) -> None:
    text = text_of(published_site / NEWER / page)
    for pattern in SAID[page]:
        found = [match.groupdict() for match in re.finditer(pattern, text)]
        assert found, pattern
        for each in found:
            assert {kind: int(number.replace(",", "")) for kind, number in each.items()}.items() <= stored.items()
