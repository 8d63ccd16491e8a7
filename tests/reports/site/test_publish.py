"""The site of two versions: what is where, when it is built again, and what a reader does with it in a browser."""

import json
import shutil
import struct
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from reports.__main__ import main as session
from reports.site import publish as publishing
from suite.errors import ReportError, UsageError
from tests.fixtures.machines.browser import Browser, Tab
from tests.fixtures.results.generated_results import smoke_results, write_results
from tests.fixtures.runs.published_site import NEWER, OLDER, TASK

FIGURE = "task-cartpole-share"
CHART = f"document.querySelector('figure[id=\"{FIGURE}\"]')"
BARS = "document.querySelector('figure[id=\"task-cartpole-parts\"]')"
FIGURES = "document.querySelectorAll('figure.vega-figure')"
END_OF_PNG = b"IEND\xaeB`\x82"


def bytes_of(site: Path) -> dict[str, bytes]:
    return {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def test_every_version_has_its_address_and_the_newest_two(published_site: Path) -> None:
    assert {path.name for path in published_site.iterdir()} == {
        OLDER, NEWER, "latest", "index.html", "versions.json", ".nojekyll",
    }  # fmt: skip
    assert bytes_of(published_site / "latest") == bytes_of(published_site / NEWER)
    assert [version["name"] for version in json.loads((published_site / "versions.json").read_text())] == [NEWER, OLDER]
    assert 'url=latest/index.html"' in (published_site / "index.html").read_text()


def test_unchanged_versions_are_kept_and_changed_ones_built_again(
    versions_results: Path, published_site: Path, tmp_path: Path
) -> None:
    before = bytes_of(published_site)
    assert publishing.publish(versions_results, published_site) == ()
    assert bytes_of(published_site) == before
    copied = shutil.copytree(versions_results, tmp_path / "results")
    shutil.rmtree(copied / NEWER)
    out = shutil.copytree(published_site, tmp_path / "site")
    assert publishing.publish(copied, out) == (OLDER,)
    assert not (out / NEWER).exists()
    assert bytes_of(out / "latest") == bytes_of(out / OLDER)
    assert [(published_site / name / "releases.html").exists() for name in (OLDER, NEWER)] == [False, True]


def test_what_an_unchanged_site_lacks_is_put_there(
    versions_results: Path, published_site: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(published_site, tmp_path / "site")
    shutil.rmtree(out / "latest")
    assert publishing.publish(versions_results, out) == ()
    assert bytes_of(out) == bytes_of(published_site)


def test_versions_are_ordered_by_their_numbers_and_what_is_none_is_named(tmp_path: Path) -> None:
    for name in ("2026.9", "2026.11", "2025.12", "2026.11.1"):
        (tmp_path / name).mkdir()
    assert publishing.version_names(tmp_path) == ["2026.11.1", "2026.11", "2026.9", "2025.12"]
    for name, fault in (("latest", "cannot be a version"), ("incoming", "incoming is no version: .* Move each")):
        (tmp_path / name).mkdir()
        with pytest.raises(ReportError, match=fault):
            publishing.version_names(tmp_path)
        (tmp_path / name).rmdir()


def test_one_version_is_no_folder_of_versions(tmp_path: Path) -> None:
    """Its sets would have become versions, each with a site of its own."""
    write_results(smoke_results(), tmp_path / "2026.11" / "desk")
    (tmp_path / "2026.11" / "report.toml").write_text("")
    with pytest.raises(ReportError, match=rf"2026.11 is one version, .* Name {tmp_path}, or build .*report -- "):
        publishing.publish(tmp_path / "2026.11", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_what_is_no_site_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_results(smoke_results(), tmp_path / "results" / "1" / "desk")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("keep me")
    arguments = ["--results", str(tmp_path / "results"), "--out", str(tmp_path / "out")]
    assert session("publish", arguments) == ReportError.exit_code
    assert "are no site" in capsys.readouterr().err
    assert session("publish", ["--results", str(tmp_path / "nowhere")]) == UsageError.exit_code
    assert (tmp_path / "out" / "thesis.txt").read_text() == "keep me"
    arguments[-1] = str(tmp_path / "out" / "thesis.txt" / "site")
    assert session("publish", arguments) == ReportError.exit_code
    assert "cannot be written: Not a directory" in capsys.readouterr().err


def test_figures_come_to_life_with_tooltips_and_legends_that_select(published_site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (published_site / NEWER / TASK).as_uri(), width=1440)
    tab.value(f"{CHART}.scrollIntoView({{block: 'center'}})")
    tab.wait_for(f"{CHART}.dataset.live")
    points = f"[...{CHART}.querySelectorAll('.vega-live .mark-symbol.role-mark path')]"
    box = tab.value(f"{points}.at(-1).getBoundingClientRect().toJSON()")
    tab.move_to(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    tab.wait_for("document.querySelector('#vg-tooltip-element.visible')")
    assert "Share of ideal" in tab.value("document.querySelector('#vg-tooltip-element').innerText")
    for figure in range(tab.value(f"{FIGURES}.length")):  # one that comes to life moves what is below it
        tab.value(f"{FIGURES}[{figure}].scrollIntoView({{block: 'center'}})")
        tab.wait_for(f"{FIGURES}[{figure}].dataset.live")
    tab.value(f"{BARS}.querySelector('.vega-live .role-legend-label').scrollIntoView({{block: 'center'}})")
    bars = f"[...{BARS}.querySelectorAll('.vega-live .mark-rect.role-mark path')]"
    opacities = f"new Set({bars}.map((bar) => bar.getAttribute('opacity') ?? '1')).size"
    assert tab.value(opacities) == 1
    entry = tab.value(f"{BARS}.querySelector('.vega-live .role-legend-label text').getBoundingClientRect().toJSON()")
    tab.click_at(entry["x"] + 4, entry["y"] + entry["height"] / 2)
    tab.wait_for(f"{opacities} === 2")
    assert tab.complaints == []


def test_the_calculator_has_a_price_that_stands_in_the_address(
    published_site: Path, browser: Browser, tmp_path: Path
) -> None:
    page = published_site / NEWER / "index.html"
    home = page.as_uri()
    tab = Tab.opened(browser, home, width=1440)
    columns = "[...document.querySelectorAll('.calculator tbody tr:first-child td')].map(cell => cell.innerText)"
    hours, cost, *of_reward = tab.value(columns)
    assert (cost, of_reward) == (hours, ["n/a", "n/a"])
    price = "document.getElementById('calculator-price')"
    tab.value(f"{price}.value = '3', {price}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert float(tab.value(columns)[1].split()[0]) == pytest.approx(3 * float(hours.split()[0]), rel=0.01)
    assert "price=3" in tab.value("location.hash")
    rewarded = tmp_path / "index.html"
    rewarded.write_text(f'<base href="{home}">' + page.read_text().replace("null,null,null]", "36,18,72]"))
    known = Tab.opened(browser, f"{rewarded.as_uri()}#price=3", width=1440)
    assert known.value(columns)[2:] == ["36.0 (18.0 to 72.0)", "0.0300 (0.0150 to 0.0600)"]
    again = Tab.opened(browser, f"{home}#task=Cartpole&price=3", width=390)
    assert again.value(f"{price}.value") == "3"
    assert again.value("document.querySelector('.calculator [name=task]:checked').value") == "Cartpole"
    assert tab.complaints == again.complaints == []


def test_the_switcher_keeps_the_page_and_older_versions_say_so(published_site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (published_site / NEWER / TASK).as_uri(), width=1440)
    assert tab.value("document.querySelector('.older')") is None
    tab.click(".switcher summary")
    tab.click(f'.switcher a[href$="{OLDER}/{TASK}"]')
    tab.wait_for(f"location.pathname.endsWith('{OLDER}/{TASK}') && document.readyState === 'complete'")
    banner, title = (
        tab.value(f"document.querySelector('{selector}').getBoundingClientRect().toJSON()")
        for selector in ("aside.older", "h1")
    )
    assert banner["bottom"] <= title["top"] < 400
    assert tab.value("document.querySelector('aside.older a').innerText") == f"The latest is {NEWER}"
    tab.click("aside.older a")
    tab.wait_for(f"location.pathname.endsWith('latest/{TASK}')")
    only_older = Tab.opened(
        browser, (published_site / OLDER / "task-shadow-hand-with-camera.html").as_uri(), width=1440
    )
    assert only_older.value(f"document.querySelector('.switcher a[href*=\"{NEWER}\"]').getAttribute('href')") == (
        f"../{NEWER}/index.html"
    )


def test_a_chart_can_be_taken_away_as_png_from_a_disk(published_site: Path, browser: Browser, tmp_path: Path) -> None:
    tab = Tab.opened(browser, (published_site / NEWER / TASK).as_uri(), width=390, dark=True)
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    tab.value(f"{CHART}.scrollIntoView({{block: 'center'}})")
    tab.wait_for(f"{CHART}.dataset.live")  # its place changes with that
    tab.click(f'figure[id="{FIGURE}"] .links button')
    file = tmp_path / f"{FIGURE}.png"
    until = time.monotonic() + 20
    while not (file.is_file() and file.read_bytes().endswith(END_OF_PNG)) and time.monotonic() < until:
        time.sleep(0.05)  # it is there, and empty, before it is complete
    content = file.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    drawing = ET.parse(published_site / NEWER / "figures" / f"{FIGURE}.svg").getroot()  # noqa: S314 - our own file
    size = [2 * float(drawing.attrib[name]) for name in ("width", "height")]
    assert list(struct.unpack(">II", content[16:24])) == pytest.approx(size, abs=1)
    assert len(content) > 10_000  # letters and lines, not one colour
    assert tab.complaints == []
    assert {url.partition(":")[0] for url in tab.requests} <= {"file", "data"}
    without = Tab.opened(browser, (published_site / NEWER / TASK).as_uri(), width=390, scripts=False)
    assert without.value("document.querySelector('.links button')") is None


def test_search_finds_pages_by_the_words_that_people_use(published_site: Path, browser: Browser) -> None:
    tab = Tab.opened(browser, (published_site / NEWER / "method.html").as_uri(), width=1440)
    first = "document.querySelector('#found a')?.getAttribute('href')"
    for words, href in (
        ("delta method", "method.html#"),
        ("5090", "hardware.html#your-gpu-is-missing"),
        ("price", "index.html"),
        ("which GPU", "index.html"),
        ("regression", "releases.html"),
        ("add my result", "data.html"),
    ):
        tab.value("document.querySelector('#query').value = ''")
        tab.click("#query")
        tab.write(words)
        tab.wait_for(f"{first}?.startsWith('{href}')", timeout_s=10)
    tab.value("document.querySelector('#query').value = ''")
    tab.click("#query")
    tab.write("xylophone")
    tab.wait_for("document.querySelector('#found .none')")
    assert tab.complaints == []


@pytest.mark.parametrize(
    ("width_px", "clicks"),
    [
        (1440, {"Explore": ["Explore"], "Cartpole": ["Tasks", "Cartpole"], "Method and limits": ["How we measure"]}),
        (390, {name: ["All pages", name] for name in ("Explore", "Cartpole", "Method and limits")}),
    ],
)
def test_a_page_is_at_most_two_clicks_away(
    published_site: Path, browser: Browser, width_px: int, clicks: dict[str, list[str]]
) -> None:
    for title, texts in clicks.items():
        tab = Tab.opened(browser, (published_site / NEWER / "index.html").as_uri(), width=width_px)
        for text in texts:
            seen = "[...document.querySelectorAll('a, summary')].filter((item) => item.checkVisibility())"
            named = f"{seen}.find((item) => item.innerText.trim() === {json.dumps(text)})"
            tab.wait_for(named)  # the click before may go to another page
            tab.value(f"{named}.click()")
        tab.wait_for(f"document.querySelector('h1')?.innerText === {json.dumps(title)}")
        assert tab.complaints == []


def test_print_has_the_drawings_and_no_controls(published_site: Path, browser: Browser, tmp_path: Path) -> None:
    tab = Tab.opened(browser, (published_site / NEWER / TASK).as_uri(), width=1440)
    tab.call("Emulation.setEmulatedMedia", media="print")
    heights = tab.value(
        "['nav', 'search', '.switcher', '.vega-static svg'].map((selector) =>"
        " document.querySelector(selector).getBoundingClientRect().height)"
    )
    assert heights[:3] == [0, 0, 0]
    assert heights[3] > 50
    assert tab.pdf(tmp_path / "page.pdf").stat().st_size > 20_000
