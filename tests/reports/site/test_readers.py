"""Readers, who know links and visible text. Each is answered in at most two clicks."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reports.site.book import build_site
from tests.fixtures.machines.browser import Browser, Tab
from tests.fixtures.results.committed_results import newest_version

MOST_CLICKS = 2
IN_THE_BAR = ("Findings", "Hardware", "Explore")
GROUPS = {"Ant": "Tasks", "Settings and sharing": "Compared", "Method and limits": "How we measure"}
DESK_PX, PHONE_PX = 1440, 390


@dataclass(kw_only=True)
class Stranger:
    """Reads what is seen, and clicks on what it says."""

    tab: Tab
    clicks: int = 0

    def click(self, text: str) -> None:
        """Click on the first link or summary that is seen and says exactly this."""
        visible = "[...document.querySelectorAll('a, summary')].filter((item) => item.checkVisibility())"
        element = f"{visible}.find((item) => item.innerText.trim() === {json.dumps(text)})"
        assert self.tab.value(f"Boolean({element})"), f"nothing that is seen says {text!r}"
        is_link, before = self.tab.value(f"{element}.tagName === 'A'"), self.tab.value("location.href")
        self.tab.value(f"{element}.click()")
        if is_link:
            self.tab.wait_for(f"location.href !== {json.dumps(before)} && document.readyState === 'complete'")
        self.clicks += 1
        assert self.clicks <= MOST_CLICKS

    def reads(self, *words: str) -> str:
        """Return the first paragraph that is seen and has all these words."""
        paragraphs: list[str] = self.tab.value(
            "[...document.querySelectorAll('main p')].filter((item) => item.checkVisibility())"
            ".map((item) => item.innerText)"
        )
        answers = [paragraph for paragraph in paragraphs if all(word in paragraph for word in words)]
        assert answers, f"no paragraph says {words}: {paragraphs[:8]}"
        return answers[0]

    def go_to(self, page: str) -> None:
        """Follow the links at the top or, on a phone, the list of all pages."""
        is_wide = self.tab.value("document.querySelector('.main-links').checkVisibility()")
        if not is_wide:
            self.click("All pages")
        elif page not in IN_THE_BAR:
            self.click(GROUPS[page])
        if self.tab.value("document.querySelector('h1').innerText") != page:
            self.click(page)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of the newest version, from the stored results."""
    out = tmp_path_factory.mktemp("site") / "2026.12"
    build_site(replace(newest_version(), older=()), out)
    return out


@pytest.fixture(params=[DESK_PX, PHONE_PX], ids=["desk", "phone"])
def stranger(request: pytest.FixtureRequest, site: Path, browser: Browser) -> Iterator[Stranger]:
    tab = Tab.opened(browser, (site / "index.html").as_uri(), width=request.param)
    yield Stranger(tab=tab)
    assert tab.complaints == []
    tab.close()


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("", ("Start with one GPU and fill it", "times the frames")),  # a newcomer with one GPU
        ("Ant", ("rl_games, 1,024 per GPU: 4 GPUs keep", "of the ideal speed", "2026")),  # an operator of a cluster
        ("Hardware", ("At equal core speed", "H200", "H100")),  # a buyer
        ("Settings and sharing", ("nother RL library makes", "times the frames")),  # an author of a framework
        ("Method and limits", ("interval", "truth")),  # a sceptic
    ],
)
def test_a_reader_who_follows_links_finds_an_answer(stranger: Stranger, page: str, words: tuple[str, ...]) -> None:
    if page:
        stranger.go_to(page)
    assert stranger.reads(*words)
