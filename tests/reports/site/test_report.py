"""A real report from GENERATED results, once for all tests here: Jupyter Book runs, so it takes seconds."""

import csv
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import altair as alt
import pytest

from reports.__main__ import main as session
from reports.sets import version as result_sets
from reports.site import book, replacing
from reports.site import build as report
from suite.errors import ReportError
from suite.files.paths import ROOT
from tests.fixtures.results.generated_results import full_results, on_gpus, smoke_results, write_results

RESULTS = [*on_gpus(smoke_results()), *full_results()[-1:]]
LOADING = dict.fromkeys(("script", "img", "video", "iframe", "source"), "src") | {"link": "href", "object": "data"}
ABOUT = {
    "index.html", "explore.html", "hardware.html", "data.html",
    *(f"task-{name}.html" for name in ("ant", "cartpole", "shadow-hand-with-camera")),
}  # fmt: skip


class Page(HTMLParser):
    """What a page loads, links to, and the ids it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in LOADING and LOADING[tag] in values:
            self.loaded.append(values[LOADING[tag]])
        if tag == "a":
            self.links.append(values["href"])
        if "id" in values:
            self.ids.append(values["id"])


def read_pages(site: Path) -> dict[str, Page]:
    return {path.name: Page(path.read_text(encoding="utf-8")) for path in sorted(site.glob("*.html"))}


@pytest.fixture(scope="module")
def results_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results(RESULTS, tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def built_site(results_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.build(results_dir, tmp_path_factory.mktemp("site") / "report").parent


@pytest.fixture(scope="module")
def pages(built_site: Path) -> dict[str, Page]:
    return read_pages(built_site)


def text_of(site: Path, name: str) -> str:
    return (site / name).read_text(encoding="utf-8")


def test_the_report_of_a_campaign_has_pages_of_its_results_and_no_guide(
    built_site: Path, pages: dict[str, Page]
) -> None:
    assert set(pages) == ABOUT
    assert "reports/results of labscale" in text_of(built_site, "index.html")


def test_a_figure_can_be_taken_away_as_a_drawing_and_as_a_table(built_site: Path) -> None:
    text = text_of(built_site, "index.html")
    assert 'href="#share"' in text
    assert ' xmlns="http://www.w3.org/2000/svg"' in text_of(built_site, "figures/share.svg")
    with (built_site / "figures" / "share.csv").open(encoding="utf-8") as file:
        headings, *rows = csv.reader(file)
    assert headings == ["Training", "Share of ideal"]
    assert rows
    assert all(len(row) == len(headings) for row in rows)


def test_every_chart_of_the_site_is_one_of_vega_lite(built_site: Path) -> None:
    """The build does not validate, because that takes as long as all else."""
    scripts = [path.read_text(encoding="utf-8") for path in (built_site / "assets").glob("figures-*.js")]
    specs = [spec for script in scripts for spec in json.loads(script[script.index("{") :].strip(";\n ")).values()]
    assert len(specs) > 5
    for spec in specs:
        alt.Chart.from_dict({name: part for name, part in spec.items() if name != "config"})  # raises


def test_nothing_is_loaded_from_another_host(built_site: Path, pages: dict[str, Page]) -> None:
    for page in pages.values():
        assert page.loaded
        for location in page.loaded:
            assert location.startswith("data:") or (built_site / location).is_file(), location
    for asset in ("report.css", "report.js"):
        assert re.findall(r"@import|url\(|fetch\(|https?:", text_of(built_site / "assets", asset)) == []
    assert all("Content-Security-Policy" in text_of(built_site, name) for name in pages)


def test_the_stored_results_can_be_taken_away_unchanged(built_site: Path, results_dir: Path) -> None:
    offered = {
        path.relative_to(built_site / "data" / "results") for path in (built_site / "data" / "results").rglob("*.json")
    }
    assert offered == {path.relative_to(results_dir) for path in results_dir.rglob("*.json")}
    for path in offered:
        assert (built_site / "data" / "results" / path).read_bytes() == (results_dir / path).read_bytes()


def test_the_folder_holds_no_path_of_the_builder(built_site: Path, results_dir: Path, pages: dict[str, Page]) -> None:
    for name in pages:
        assert str(ROOT) not in text_of(built_site, name)
        assert str(results_dir) not in text_of(built_site, name)
    assert {path.name for path in built_site.iterdir()} == {"assets", "data", "figures", *pages}


def test_two_builds_are_equal_wherever_and_the_second_replaces_the_first(
    built_site: Path, results_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.relative_to(built_site): path.read_bytes() for path in built_site.rglob("*") if path.is_file()}
    elsewhere = shutil.copytree(results_dir, tmp_path / "elsewhere")
    working_folder = tmp_path / "working"
    working_folder.mkdir()
    monkeypatch.chdir(working_folder)
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    assert report.build(elsewhere, built_site) == built_site / "index.html"
    after = {path.relative_to(built_site): path.read_bytes() for path in built_site.rglob("*") if path.is_file()}
    assert before == after
    assert list(working_folder.iterdir()) == []


@pytest.mark.parametrize("place", ["", "assets", "deep/below"])
def test_a_file_of_the_users_in_an_earlier_report_is_named_and_left_alone(tmp_path: Path, place: str) -> None:
    out, part = tmp_path / "report", tmp_path / "part"
    (part / "assets").mkdir(parents=True)
    replacing.replace_folder(out, [part])
    replacing.check_replaceable(out)
    kept = out / place / "thesis.txt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("keep me", encoding="utf-8")
    with pytest.raises(ReportError, match=f"are no report, .*: {kept.relative_to(out)}"):
        replacing.check_replaceable(out)


def test_an_earlier_report_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    out, old, new = (tmp_path / name for name in ("report", "old", "new"))
    for part in (old, new):
        part.mkdir()
        (part / "page.html").write_text(part.name, encoding="utf-8")
    replacing.replace_folder(out, [old])
    with pytest.raises(ReportError, match="cannot be written"):
        replacing.replace_folder(out, [new, tmp_path / "nowhere"])
    assert text_of(out, "page.html") == "old"
    replacing.replace_folder(out, [new])  # what the broken one left is no obstacle
    assert text_of(out, "page.html") == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"report", "old", "new"}


def test_a_link_to_a_folder_is_followed(monkeypatch: pytest.MonkeyPatch, results_dir: Path, tmp_path: Path) -> None:
    built: list[Path] = []
    monkeypatch.setattr(report, "build_sites", built.extend)
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert session("report", [str(results_dir), "--out", str(tmp_path / "link")]) == 0
    assert built == [tmp_path / "target"]


@pytest.mark.parametrize("place", ["file", "file/report", "file/below/report"])
def test_a_folder_that_cannot_be_written_is_said_before_anything_is_built(
    results_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    place: str,
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(book, "run_cells", lambda *_: pytest.fail("pages were built"))
    out = tmp_path / place
    assert session("report", [str(results_dir), "--out", str(out)]) == ReportError.exit_code
    assert str(tmp_path / "file") in capsys.readouterr().err


def test_a_report_that_cannot_be_copied_to_its_place_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(source: Path, target: Path, **_: object) -> None:
        raise shutil.Error([(f"{source}/{name}", f"{target}/{name}", "No space left") for name in ("a", "b")])

    (tmp_path / "site").mkdir()
    monkeypatch.setattr(shutil, "copytree", disk_full)
    with pytest.raises(ReportError, match=r"out cannot be written: No space left\. Check"):
        replacing.replace_folder(tmp_path / "out", [tmp_path / "site"])


def test_missing_node_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    with pytest.raises(ReportError, match="node and npm"):
        book.path_with_node()


def test_a_page_without_results_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(result_sets.VERSION_VARIABLE, raising=False)
    result_sets.version_of_page.cache_clear()
    with pytest.raises(ReportError, match=result_sets.VERSION_VARIABLE):
        result_sets.version_of_page()
