"""A topic is a folder and a line: without both, everything else is still there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reports.site.topics import TOPICS, topics
from suite.files.paths import ROOT

# The section of a series is a part of the page of its task, and reports/site/series.py composes it.
SHOWN_OF_A_SERIES = {"tasks"}
EVERY_MODULE = """
import importlib, json, pkgutil, reports
for module in pkgutil.walk_packages(reports.__path__, "reports."):
    importlib.import_module(module.name)
from reports.__main__ import MODULES
from reports.site.pages import pages
print(json.dumps({"folder": reports.__path__[0], "pages": [page.text for page in pages()], "sessions": [*MODULES]}))
"""


def test_the_list_has_every_folder() -> None:
    folders = {path.parent.name for path in (ROOT / "reports" / "topics").glob("*/__init__.py")}
    assert set(TOPICS) == folders
    assert folders > SHOWN_OF_A_SERIES


@pytest.mark.parametrize("deleted", sorted(set(TOPICS) - SHOWN_OF_A_SERIES))
def test_without_its_folder_and_line_a_topic_is_gone_and_nothing_else(deleted: str, tmp_path: Path) -> None:
    """Every module of the copy is imported, so none names what was deleted."""
    copy = tmp_path / "reports"
    shutil.copytree(ROOT / "reports", copy, ignore=shutil.ignore_patterns("results", "__pycache__"))
    if deleted != "results":  # its name is that of the stored results, which are left out
        shutil.copytree(ROOT / "reports/topics/results", copy / "topics/results", dirs_exist_ok=True)
        shutil.rmtree(copy / "topics" / deleted)
    listing = copy / "site" / "topics.py"
    lines = listing.read_text().splitlines(keepends=True)
    left = [line for line in lines if not line.strip().startswith(f'"{deleted}":')]
    assert len(left) == len(lines) - 1
    listing.write_text("".join(left))
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (tmp_path, ROOT)))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["folder"] == str(copy)
    of_topic = dict(zip(TOPICS, topics(), strict=True))
    assert found["pages"] == [page.text for name, topic in of_topic.items() if name != deleted for page in topic.pages]
    assert not set(TOPICS[deleted]) & set(found["sessions"])
