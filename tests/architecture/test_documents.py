"""Documents name what is there: paths that exist, every folder, a current picture of imports."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.architecture import imports_picture
from tests.architecture.test_layering import ROOT

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DOCUMENTS = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
TOPS = "book|containers|reports|suite|tasks|tests"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_path_that_a_document_names_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    named = set(re.findall(rf"`((?:(?:{TOPS})/|\.github/)[\w./-]*)`", text)) | set(re.findall(r"\]\(([^)#:]+)\)", text))
    assert {path for path in named if not (ROOT / path).exists()} == set()


def folders() -> set[str]:
    """Folders of code, down to those below a package."""
    done = subprocess.run(
        ["git", "ls-files", "-z", "suite", "tasks"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("not a git checkout")
    return {"/".join(Path(name).parts[:2]) for name in done.stdout.split("\0") if len(Path(name).parts) > 2}


def test_every_package_has_a_line_in_the_table() -> None:
    assert folders() - set(re.findall(r"^\| `((?:suite|tasks)/\w+)/` \|", ARCHITECTURE, re.MULTILINE)) == set()


def test_every_package_has_a_box() -> None:
    drawn = {name.replace(".", "/") for name in imports_picture.ORDER}
    assert {name for name in folders() if (ROOT / name / "__init__.py").is_file()} - drawn == set()


def test_the_picture_of_imports_is_current() -> None:
    """If not: ``python -m tests.architecture.imports_picture``."""
    assert imports_picture.PATH.read_text(encoding="utf-8") == imports_picture.drawn()


def test_an_arrow_that_a_longer_way_implies_is_left_out() -> None:
    one, two, three = "suite.matrix", "suite.records", "suite.campaign"
    assert imports_picture.without_implied({(three, two), (two, one), (three, one)}) == {(three, two), (two, one)}
