"""A topic is a folder and a line: without both, everything else is still there."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from reports.display.page import PAGES_FOLDER
from reports.display.topic import Topic
from reports.site.contents import PAGES
from reports.site.topics import TOPICS, topics
from suite.errors import UsageError
from suite.files.paths import ROOT
from tests.fixtures.results.generated_results import on_gpus, smoke_results, write_results

TOGETHER: tuple[str, ...] = ()
# For each folder of a copy in turn: every module of its `reports`, none of which an earlier copy has left behind.
EVERY_MODULE = """
import importlib, json, pkgutil, sys
for folder in sys.argv[1:]:
    for name in [name for name in sys.modules if name.partition(".")[0] in ("reports", "suite", "tasks")]:
        del sys.modules[name]
    sys.path[0] = folder
    importlib.invalidate_caches()
    import reports
    for module in pkgutil.walk_packages(reports.__path__, "reports."):
        importlib.import_module(module.name)
    from reports.__main__ import MODULES
    from reports.site.contents import PAGES
    print(json.dumps({"folder": reports.__path__[0], "pages": [page.text for page in PAGES], "sessions": [*MODULES]}))
"""


def test_the_list_has_every_folder() -> None:
    folders = {path.parent.name for path in (ROOT / "reports" / "topics").glob("*/__init__.py")}
    assert set(TOPICS) == folders


def test_every_text_is_in_the_list_of_pages_and_has_a_module() -> None:
    texts = {path.stem for path in PAGES_FOLDER.glob("*.md")}
    assert texts == {page.text for page in PAGES} - of_topics()
    assert texts <= {path.stem for path in PAGES_FOLDER.glob("*.py")}


@pytest.mark.parametrize("name", sorted(TOPICS))
def test_the_texts_of_a_topic_are_those_of_its_pages(name: str) -> None:
    texts = {path.stem for path in (ROOT / "reports" / "topics" / name / "pages").iterdir()}
    assert texts == {page.text for page in by_name()[name].pages}


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What every module of a copy says, by the topic that the copy lacks: all in one process, which starts once."""
    folder = tmp_path_factory.mktemp("copies")
    copies = {name: copy_without([name], folder / name).parent for name in sorted(TOPICS)}
    said = output_of(["-c", EVERY_MODULE, *map(str, copies.values())], folder).splitlines()
    return dict(zip(copies, map(json.loads, said[-len(copies) :]), strict=True))


@pytest.mark.parametrize("deleted", sorted(TOPICS))
def test_without_its_folder_and_line_a_topic_is_gone_and_nothing_else(
    deleted: str, without: dict[str, dict[str, Any]]
) -> None:
    """Every module of the copy is imported, so none names what was deleted."""
    found = without[deleted]
    assert Path(found["folder"]).parent.name == deleted
    assert found["pages"] == [page.text for page in PAGES if page not in by_name()[deleted].pages]
    assert not set(TOPICS[deleted]) & set(found["sessions"])


def test_a_command_without_a_session_says_which_there_are() -> None:
    done = python(["-m", "reports"], ROOT)
    assert done.returncode == UsageError.exit_code
    assert done.stderr.startswith("python -m reports: got the session '', allowed are accept, ")


def test_a_site_is_built_without_most_topics_and_no_link_leads_to_their_pages(tmp_path: Path) -> None:
    copy_without(TOGETHER, tmp_path)
    results = write_results(on_gpus(smoke_results()), tmp_path / "results")
    output_of(["-m", "reports", "report", str(results), "--out", str(tmp_path / "site")], tmp_path)
    site = tmp_path / "site"
    built = {path.name for path in site.glob("*.html")}
    assert {"index.html", "task-ant.html"} < built
    deleted = {
        f"{page.name or page.text}.html"
        for name, topic in by_name().items()
        if name in TOGETHER
        for page in topic.pages
    }
    assert deleted
    assert not deleted & built
    linked = {
        (path.name, page)
        for path in site.glob("*.html")
        for page in re.findall(r'href="([\w-]+\.html)', path.read_text(encoding="utf-8"))
    }
    assert {page for _, page in linked} & built
    assert {(page, to) for page, to in linked if to not in built} == set()


def of_topics() -> set[str]:
    return {page.text for topic in topics() for page in topic.pages}


def by_name() -> dict[str, Topic]:
    return dict(zip(TOPICS, topics(), strict=True))


def copy_without(deleted: Sequence[str], folder: Path) -> Path:
    """Copy the project without these topics' folders and lines, and without stored results; return ``reports``."""
    copy = folder / "reports"
    for name in ("suite", "tasks", "book", "reports"):
        shutil.copytree(ROOT / name, folder / name, ignore=_left_out)
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copy(path, folder)
    listing = copy / "site" / "topics.py"
    lines = listing.read_text().splitlines(keepends=True)
    for name in deleted:
        shutil.rmtree(copy / "topics" / name)
        lines.remove(next(line for line in lines if line.strip().startswith(f'"{name}":')))
    listing.write_text("".join(lines))
    return copy


def _left_out(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == "__pycache__" or (name == "results" and Path(folder).name == "reports")]


def python(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the copy in ``folder`` in place of this checkout, and nox with the same Python."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def output_of(arguments: Sequence[str], folder: Path) -> str:
    done = python(arguments, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
