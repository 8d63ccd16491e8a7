"""The section of a series on the page of its task, as a reader's browser shows it."""

from pathlib import Path

import pytest

from tests.fixtures.machines.browser import Browser, Tab
from tests.fixtures.runs.published_site import NEWER, TASK

DESK_PX, PHONE_PX = 1440, 390
SECTION = "series-cartpole-strong"
FOLD = f"document.querySelector('#{SECTION} + p + .fold')"
HEADING = f"document.getElementById('{SECTION}-speed-up')"  # within the fold
IS_SEEN = f"{HEADING}.checkVisibility({{contentVisibilityAuto: true}})"

# A second passes between a figure in the page and the end of its drawing, as on a slow machine.
DRAWN_LATE = """Object.defineProperty(window, "vegaEmbed", {
  get() { return this.late; },
  set(draw) {
    this.late = async (...all) => {
      const drawn = await draw(...all);
      await new Promise((end) => setTimeout(end, 1000));
      return drawn;
    };
  },
});"""


@pytest.fixture
def page(published_site: Path) -> str:
    return (published_site / NEWER / TASK).as_uri()


# Figures that come to life move what is below them, so what is clicked on is named and not pointed at.
def top_of(tab: Tab, anchor: str) -> float:
    top: float = tab.value(f"document.getElementById('{anchor}').getBoundingClientRect().top")
    return top


@pytest.mark.parametrize("width", [DESK_PX, PHONE_PX], ids=["desk", "phone"])
@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_fold_is_closed_and_a_click_opens_it(page: str, browser: Browser, scripts: bool, width: int) -> None:
    tab = Tab.opened(browser, page, width=width, scripts=scripts)
    assert not tab.value(IS_SEEN)
    closed_px = tab.value("document.documentElement.scrollHeight")
    tab.value(f"{FOLD}.querySelector('summary').click()")
    tab.wait_for(IS_SEEN)
    assert tab.value("document.documentElement.scrollHeight") > closed_px + 2000
    tab.value(f"{FOLD}.querySelector('summary').click()")
    tab.wait_for(f"!{IS_SEEN}")
    tab.close()


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
@pytest.mark.parametrize("anchor", [SECTION, f"{SECTION}-speed-up", "desk-cartpole-strong-efficiency"])
def test_an_address_shows_what_is_in_the_fold(page: str, browser: Browser, anchor: str, scripts: bool) -> None:
    tab = Tab.opened(browser, f"{page}#{anchor}", width=DESK_PX, scripts=scripts)
    tab.wait_for(IS_SEEN)
    assert abs(top_of(tab, anchor)) < 100
    assert tab.complaints == []
    tab.close()


def test_a_link_on_the_page_opens_the_fold_each_time(page: str, browser: Browser) -> None:
    tab = Tab.opened(browser, page, width=DESK_PX)
    for _ in range(2):
        tab.value(f"document.querySelector('main a[href=\"#{SECTION}\"]').click()")
        tab.wait_for(f"{FOLD}.open && {IS_SEEN}")
        assert abs(top_of(tab, SECTION)) < 100
        tab.value(f"{FOLD}.open = false")
    tab.close()


def test_figures_that_are_drawn_late_do_not_move_the_place_that_a_link_showed(page: str, browser: Browser) -> None:
    """They are above it. While one was drawn, its static picture was shown too, and went when the place was shown."""
    tab = Tab.opened(browser, "about:blank", width=DESK_PX)
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=DRAWN_LATE)
    tab.call("Page.navigate", url=page)
    tab.wait_for("document.querySelectorAll('.panels .vega-live svg').length === 2")
    tab.value(f"document.querySelector('main a[href=\"#{SECTION}\"]').click()")
    tab.wait_for("document.querySelectorAll('.panels figure[data-live]').length === 2")
    assert abs(top_of(tab, SECTION)) < 100
    tab.close()


def test_print_has_what_is_folded(page: str, browser: Browser, tmp_path: Path) -> None:
    tab = Tab.opened(browser, page, width=DESK_PX, scripts=False)
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.value(f"{FOLD}.querySelector('.vega-static svg').getBoundingClientRect().height") > 50
    assert tab.value(IS_SEEN)
    assert tab.value(f"{FOLD}.querySelector('summary').getBoundingClientRect().height") == 0
    num_pages = tab.pdf(tmp_path / "page.pdf").read_bytes().count(b"/Type /Page\n")
    assert num_pages > 3
    tab.close()


@pytest.mark.parametrize("words", ["8,192 environments in all", "cartpole-strong"])
def test_search_finds_a_series_by_its_title(page: str, browser: Browser, words: str) -> None:
    tab = Tab.opened(browser, page.replace(TASK, "index.html"), width=DESK_PX)
    tab.click("#query")
    tab.write(words)
    tab.wait_for("document.querySelector('#found a')")
    assert tab.value("document.querySelector('#found a').getAttribute('href')") == f"{TASK}#{SECTION}"
    tab.click("#found a")
    tab.wait_for(f"location.hash === '#{SECTION}' && document.readyState === 'complete'")
    tab.wait_for(IS_SEEN)
    tab.close()


def test_every_series_is_in_the_contents_of_its_task_and_no_part_of_those_of_the_site(published_site: Path) -> None:
    text = (published_site / NEWER / TASK).read_text(encoding="utf-8")
    contents = text.partition('<nav aria-label="Contents">')[2].partition("</nav>")[0]
    assert '<p class="nav-title">Tasks</p>' in contents
    assert '<p class="nav-title">Series</p>' not in contents
    assert f'<a href="#{SECTION}">8,192 environments in all (cartpole-strong)</a>' in contents
