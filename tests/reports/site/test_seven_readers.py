"""Seven readers, who know links, visible text and the search. Each is answered in at most two clicks."""

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

    def search(self, words: str) -> None:
        """Write words into the search, and follow the first hit."""
        self.tab.click("#query")
        self.tab.write(words)
        self.tab.wait_for("document.querySelector('#found a')")
        before = self.tab.value("location.href")
        self.tab.click("#found a")
        self.tab.wait_for(f"location.href !== {json.dumps(before)} && document.readyState === 'complete'")
        self.clicks += 1


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


def test_a_newcomer_with_one_gpu_learns_what_to_do_first(stranger: Stranger) -> None:
    assert stranger.reads("Start with one GPU and fill it", "times the frames")
    assert stranger.clicks == 0


def test_an_operator_of_a_cluster_learns_what_four_gpus_keep(stranger: Stranger) -> None:
    stranger.go_to("Ant")
    assert stranger.reads("rl_games, 1,024 per GPU: 4 GPUs keep", "of the ideal speed", "2026")


def test_a_buyer_learns_whether_an_h200_trains_faster_than_an_h100(stranger: Stranger) -> None:
    stranger.go_to("Hardware")
    assert stranger.reads("At equal core speed", "H200", "H100")


def test_an_author_of_a_framework_learns_what_another_library_makes(stranger: Stranger) -> None:
    stranger.go_to("Settings and sharing")
    assert stranger.reads("nother RL library makes", "times the frames")


def test_whoever_makes_releases_learns_whether_they_are_slower(stranger: Stranger) -> None:
    stranger.search("release slower")
    assert stranger.reads("release", "clearly slower", "would have shown")


def test_a_sceptic_learns_how_often_an_interval_is_right(stranger: Stranger) -> None:
    stranger.go_to("Method and limits")
    assert stranger.reads("interval", "truth")


def test_a_contributor_learns_which_commands_add_a_result(stranger: Stranger) -> None:
    stranger.search("add my result")
    commands: list[str] = stranger.tab.value("[...document.querySelectorAll('main pre')].map((each) => each.innerText)")
    assert [text for text in commands if "nox -s submit" in text]


def test_whoever_asks_whether_it_is_a_regression_finds_the_releases(stranger: Stranger) -> None:
    stranger.search("regression")
    assert stranger.tab.value("location.pathname").endswith("/releases.html")
