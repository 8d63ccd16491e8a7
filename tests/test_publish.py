"""The site of two versions from GENERATED results, as a reader's browser sees it. Without a Chromium it is skipped."""

import json
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from reports import publish as publishing
from suite.errors import ReportError
from tests.browser import Browser, Tab, browser_program
from tests.generated_results import full_results, smoke_results, write_results
from tests.test_report import read_pages

WIDTHS = (390, 1440)
OLDER, NEWER = "2026.9", "2026.11"
SERIES = "series-cartpole-strong.html"
CHART = "document.querySelector('figure[id=\"desk-cartpole-strong-efficiency\"]')"

needs_browser = pytest.mark.skipif(browser_program() is None, reason="no Chromium is installed")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_results(smoke_results(), folder / OLDER / "desk")
    write_results(full_results(), folder / NEWER / "desk")
    write_results(smoke_results()[:4], folder / NEWER / "laptop")
    return folder


@pytest.fixture(scope="module")
def site(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "site"
    assert publishing.publish(results, out) == (NEWER, OLDER)
    return out


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with Browser.started(tmp_path_factory.mktemp("profile")) as started:
        yield started


def bytes_of(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_every_version_has_its_address_and_the_newest_two(site: Path) -> None:
    assert {path.name for path in site.iterdir()} == {
        OLDER, NEWER, "latest", "index.html", "versions.json", ".nojekyll",
    }  # fmt: skip
    assert bytes_of(site / "latest") == bytes_of(site / NEWER)
    assert [version["name"] for version in json.loads((site / "versions.json").read_text())] == [NEWER, OLDER]
    assert 'url=latest/index.html"' in (site / "index.html").read_text()


def test_pages_of_several_sets_have_headings_in_order_and_regions_with_names(site: Path) -> None:
    for name, page in read_pages(site / NEWER).items():
        assert all(later - earlier <= 1 for earlier, later in pairwise(page.headings)), name
        assert len(page.regions) == len(set(page.regions)), name
        assert len(page.ids) == len(set(page.ids)), name


def test_unchanged_versions_are_kept_and_changed_ones_built_again(results: Path, site: Path, tmp_path: Path) -> None:
    before = bytes_of(site)
    assert publishing.publish(results, site) == ()
    assert bytes_of(site) == before
    copied = shutil.copytree(results, tmp_path / "results")
    shutil.rmtree(copied / OLDER)
    out = shutil.copytree(site, tmp_path / "site")
    assert publishing.publish(copied, out) == (NEWER,)
    assert not (out / OLDER).exists()
    assert "comparison.html" not in {path.name for path in (out / NEWER).iterdir()}


def test_versions_are_ordered_by_their_numbers(tmp_path: Path) -> None:
    for name in ("2026.9", "2026.11", "2025.12", "2026.11.1"):
        (tmp_path / name).mkdir()
    assert publishing.version_names(tmp_path) == ["2026.11.1", "2026.11", "2026.9", "2025.12"]
    (tmp_path / "latest").mkdir()
    with pytest.raises(ReportError, match="cannot be a version"):
        publishing.version_names(tmp_path)


def test_what_is_no_site_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(smoke_results(), tmp_path / "results" / "1" / "desk")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("keep me")
    arguments = ["--results", str(tmp_path / "results"), "--out", str(tmp_path / "out")]
    assert publishing.main(arguments) == ReportError.exit_code
    assert "are no site" in capsys.readouterr().err
    assert publishing.main(["--results", str(tmp_path / "nowhere")]) == ReportError.exit_code
    assert (tmp_path / "out" / "thesis.txt").read_text() == "keep me"


@needs_browser
@pytest.mark.parametrize("width", WIDTHS)
def test_every_page_of_every_version_is_sound(site: Path, browser: Browser, width: int) -> None:
    pages = sorted(path for name in (OLDER, NEWER) for path in (site / name).glob("*.html"))
    assert len(pages) > 15
    for page in pages:
        tab = Tab.opened(browser, page.as_uri(), width=width)
        tab.value("window.scrollTo(0, document.body.scrollHeight)")
        assert tab.complaints == [], page
        assert {address.partition(":")[0] for address in tab.requests} <= {"file", "data"}, page
        assert tab.value("document.documentElement.scrollWidth") <= width, page
        tab.close()


@needs_browser
def test_figures_come_to_life_with_tooltips_and_legends_that_select(site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (site / NEWER / SERIES).as_uri(), width=1440)
    tab.value(f"{CHART}.scrollIntoView({{block: 'center'}})")
    tab.wait_for(f"{CHART}.dataset.live")
    points = f"[...{CHART}.querySelectorAll('.vega-live .mark-symbol.role-mark path')]"
    box = tab.value(f"{points}.at(-1).getBoundingClientRect().toJSON()")
    tab.move_to(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.wait_for("document.querySelector('#vg-tooltip-element.visible')")
    assert "Efficiency" in tab.value("document.querySelector('#vg-tooltip-element').innerText")
    opacities = f"new Set({points}.map((point) => point.getAttribute('opacity') ?? '1')).size"
    assert tab.value(opacities) == 1
    entry = tab.value(f"{CHART}.querySelector('.vega-live .role-legend-label text').getBoundingClientRect().toJSON()")
    tab.click_at(entry["x"] + 4, entry["y"] + entry["height"] / 2)
    tab.wait_for(f"{opacities} === 2")
    assert tab.complaints == []


@needs_browser
def test_the_switcher_keeps_the_page_and_older_versions_say_so(site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (site / NEWER / SERIES).as_uri(), width=1440)
    assert tab.value("document.querySelector('.older')") is None
    tab.click(".switcher summary")
    tab.click(f'.switcher a[href$="{OLDER}/{SERIES}"]')
    tab.wait_for(f"location.pathname.endsWith('{OLDER}/{SERIES}') && document.readyState === 'complete'")
    assert "older" in tab.value("document.querySelector('aside.older').innerText")
    tab.click("aside.older a")
    tab.wait_for(f"location.pathname.endsWith('latest/{SERIES}')")
    only_older = Tab.opened(browser, (site / OLDER / "series-shadow-horizontal.html").as_uri(), width=1440)
    assert only_older.value(f"document.querySelector('.switcher a[href*=\"{NEWER}\"]').getAttribute('href')") == (
        f"../{NEWER}/index.html"
    )


@needs_browser
def test_nothing_is_missing_without_javascript(site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (site / NEWER / SERIES).as_uri(), width=1440, scripts=False)
    drawings = tab.value(
        "[...document.querySelectorAll('.vega-static svg')].map((svg) => svg.getBoundingClientRect().height)"
    )
    assert len(drawings) > 5
    assert min(drawings) > 50
    assert tab.value("document.querySelector('search').getBoundingClientRect().height") == 0
    assert tab.value("document.querySelectorAll('.switcher a').length") == 2
    assert tab.requests == [address for address in tab.requests if address.startswith(("file:", "data:"))]


@needs_browser
def test_search_finds_a_word_and_leads_to_its_section(site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (site / NEWER / "index.html").as_uri(), width=1440)
    tab.click("#query")
    tab.write("bootstrap percentile")
    tab.wait_for("document.querySelector('#found a')")
    assert tab.value("document.querySelector('#found a').getAttribute('href')").startswith("methodology.html#")
    tab.click("#found a")
    tab.wait_for("location.pathname.endsWith('methodology.html') && document.readyState === 'complete'")
    tab.click("#query")
    tab.write("xylophone")
    tab.wait_for("document.querySelector('#found .none')")
    assert tab.complaints == []


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_what_is_behind_it(site: Path, browser: Browser, dark: bool) -> None:
    tab = Tab.opened(browser, (site / NEWER / SERIES).as_uri(), width=1440, dark=dark)
    colours = tab.value(
        "['body', '.lead', 'nav a', 'td', 'figcaption', 'figcaption summary', 'figcaption td', '.switcher summary']"
        ".map((selector) => { const element = document.querySelector(selector);"
        " let behind = element; while (getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)')"
        " behind = behind.parentElement ?? document.body;"
        " return [selector, getComputedStyle(element).color, getComputedStyle(behind).backgroundColor]; })"
    )
    for selector, text, background in colours:
        assert contrast(text, background) >= 4.5, (selector, text, background)


def contrast(one: str, other: str) -> float:
    """As WCAG defines it, of two colours like ``rgb(1, 2, 3)``."""

    def luminance(colour: str) -> float:
        parts = [int(part) / 255 for part in colour.removeprefix("rgb(").rstrip(")").split(",")]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@needs_browser
def test_print_has_the_drawings_and_no_controls(site: Path, browser: Browser, tmp_path: Path) -> None:
    tab = Tab.opened(browser, (site / NEWER / SERIES).as_uri(), width=1440)
    tab.call("Emulation.setEmulatedMedia", media="print")
    heights = tab.value(
        "['nav', 'search', '.switcher', '.vega-static svg'].map((selector) =>"
        " document.querySelector(selector).getBoundingClientRect().height)"
    )
    assert heights[:3] == [0, 0, 0]
    assert heights[3] > 50
    assert tab.pdf(tmp_path / "page.pdf").stat().st_size > 20_000
