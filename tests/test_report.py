"""A real page from GENERATED results, once for all tests here: Jupyter Book runs, so it takes seconds."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reports import build as report
from suite.errors import ReportError, StoreError
from tests.generated_results import LABEL, full_results, smoke_results, write_results

FIGURES_PER_SERIES = 5
LOADING = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data"}


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


@pytest.fixture(scope="module")
def results_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_results([*smoke_results(), *full_results()[-1:]], tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="module")
def index(results_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report.build(results_dir, tmp_path_factory.mktemp("site") / "report", version="generated")


@pytest.fixture(scope="module")
def text(index: Path) -> str:
    return index.read_text(encoding="utf-8")


def test_every_figure_is_drawn_and_every_case_named(text: str) -> None:
    series = {result.case.series for result in smoke_results()}
    assert text.count('<figure class="vega-figure"') == text.count("<svg ") == len(series) * FIGURES_PER_SERIES
    for result in [*smoke_results(), *full_results()[-1:]]:
        assert result.case.case_id.replace("/", "/<wbr>") in text


def test_nothing_is_loaded_from_another_host(index: Path, text: str) -> None:
    page = Page(text)
    assert page.loaded
    for location in page.loaded:
        assert location == "data:," or (index.parent / location).is_file(), location
    style = (index.parent / "assets" / "report.css").read_text(encoding="utf-8")
    assert re.findall(r"@import|url\(", style) == []
    assert "Content-Security-Policy" in text


def test_every_link_leads_somewhere(index: Path, text: str) -> None:
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    for link in page.links:
        location, _, fragment = link.partition("#")
        assert not location or (index.parent / location).is_file(), link
        assert not fragment or fragment in page.ids, link


def test_failures_stand_with_their_reasons(text: str) -> None:
    assert "generated failure of rank 1: out of shared memory" in text
    assert "needs 16 GPUs of one host, this one has 8" in text


def test_a_reader_learns_where_it_ran_and_what_cpu_numbers_are_worth(text: str) -> None:
    assert text.count(LABEL) > FIGURES_PER_SERIES
    assert "no statement about performance on GPUs" in text
    assert "<title>Scaling report, labscale generated</title>" in text


def test_the_folder_holds_no_path_of_the_builder(index: Path, results_dir: Path, text: str) -> None:
    assert str(report.ROOT) not in text
    assert str(results_dir) not in text
    assert sorted(path.name for path in index.parent.iterdir()) == ["assets", "index.html"]


def test_two_builds_are_equal_and_the_second_replaces_the_first(index: Path, results_dir: Path) -> None:
    before = {path.relative_to(index.parent): path.read_bytes() for path in index.parent.rglob("*") if path.is_file()}
    assert report.build(results_dir, index.parent, version="generated") == index
    after = {path.relative_to(index.parent): path.read_bytes() for path in index.parent.rglob("*") if path.is_file()}
    assert before == after


def test_a_folder_that_is_no_report_is_left_alone(results_dir: Path, tmp_path: Path) -> None:
    kept = tmp_path / "thesis.txt"
    kept.write_text("keep me", encoding="utf-8")
    with pytest.raises(ReportError, match="are no report"):
        report.build(results_dir, tmp_path, version="generated")
    assert kept.read_text(encoding="utf-8") == "keep me"


def test_errors_are_one_message_and_an_exit_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path / "nowhere"), "--out", str(tmp_path / "out")]
    assert report.main(arguments) == ReportError.exit_code
    assert report.main([str(tmp_path), "--out", str(tmp_path / "out")]) == StoreError.exit_code
    said = capsys.readouterr().err
    assert "There is no folder" in said
    assert "Traceback" not in said
    assert not (tmp_path / "out").exists()


def test_missing_node_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    with pytest.raises(ReportError, match="node and npm"):
        report._path_with_node()


def test_a_page_without_results_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(report.RESULTS_VARIABLE, raising=False)
    with pytest.raises(ReportError, match=report.RESULTS_VARIABLE):
        report.campaign_of_page()
