"""Four questions of a stranger, who knows links and visible text only. Each is answered in at most two clicks."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fixtures.machines.browser import Browser, Tab
from tests.fixtures.runs.published_site import NEWER

MOST_CLICKS = 2
DESK_PX, PHONE_PX = 1440, 390


@dataclass(kw_only=True)
class Stranger:
    """Reads what is seen, and clicks on what it says."""

    tab: Tab
    clicks: int = 0

    def click(self, text: str) -> None:
        """Click on the first link or summary that is seen and says exactly this."""
        seen = "[...document.querySelectorAll('a, summary')].filter((each) => each.checkVisibility())"
        found = f"{seen}.find((each) => each.innerText.trim() === {json.dumps(text)})"
        assert self.tab.value(f"Boolean({found})"), f"nothing that is seen says {text!r}"
        is_link, before = self.tab.value(f"{found}.tagName === 'A'"), self.tab.value("location.href")
        self.tab.value(f"{found}.click()")
        if is_link:
            self.tab.wait_for(f"location.href !== {json.dumps(before)} && document.readyState === 'complete'")
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS

    def reads(self, *words: str) -> str:
        """Return the first paragraph that is seen and has all these words."""
        paragraphs: list[str] = self.tab.value(
            "[...document.querySelectorAll('main p')].filter((each) => each.checkVisibility())"
            ".map((each) => each.innerText)"
        )
        found = [each for each in paragraphs if all(word in each for word in words)]
        assert found, f"no paragraph says {words}: {paragraphs[:8]}"
        return found[0]


@pytest.fixture(params=[DESK_PX, PHONE_PX], ids=["desk", "phone"])
def stranger(request: pytest.FixtureRequest, published_site: Path, browser: Browser) -> Iterator[Stranger]:
    tab = Tab.opened(browser, (published_site / NEWER / "index.html").as_uri(), width=request.param)
    yield Stranger(tab=tab)
    tab.close()


def go_to(stranger: Stranger, task: str) -> None:
    """Go to the page of a task, by the links at the top or, on a phone, by the list of all pages."""
    is_wide = stranger.tab.value("document.querySelector('.main-links').checkVisibility()")
    stranger.click("Tasks" if is_wide else "All pages")
    if stranger.tab.value("document.querySelector('h1').innerText") != task:
        stranger.click(task)
    stranger.tab.wait_for(f"document.querySelector('h1').innerText === {json.dumps(task)}")


def test_how_many_gpus_for_ant(stranger: Stranger) -> None:
    go_to(stranger, "Ant")
    assert stranger.reads("1,024 per GPU: 8 GPUs keep", "of the ideal speed")


def test_how_well_does_cartpole_scale_with_a_fixed_number_of_environments(stranger: Stranger) -> None:
    go_to(stranger, "Cartpole")
    assert stranger.reads("8,192 in total: 8 GPUs keep", "of the ideal speed")


def test_on_which_hardware_and_when(stranger: Stranger) -> None:
    assert stranger.reads("measured ", " on Generated Accelerator", "2026")
    assert stranger.clicks == 0


def test_how_sure_is_it(stranger: Stranger) -> None:
    cells: list[str] = stranger.tab.value(
        "[...document.querySelectorAll('main table td')].map((cell) => cell.innerText)"
    )
    assert [cell for cell in cells if re.fullmatch(r"\d+ of \d+ clear", cell)]
    assert stranger.clicks == 0
