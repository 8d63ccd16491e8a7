"""Documents name what is there: paths, every folder, the order of packages, every exit code."""

import inspect
import re
import subprocess
from pathlib import Path

import pytest

from suite import errors
from tests.architecture.test_layering import FLOORS, REPORTS_FLOORS, ROOT
from tests.architecture.test_workflows import FORMS, GITHUB, sessions

ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DOCUMENTS = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    GITHUB / "pull_request_template.md", *FORMS,
]  # fmt: skip
TOPS = "book|containers|reports|suite|tasks|tests"
GPU_UUID = re.compile(r"GPU-(?!0000000)[0-9a-f]{8}-[0-9a-f-]{27}")
EXIT_CODE = re.compile(r"^\| (\d+) \| (.+) \|$", flags=re.MULTILINE)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_path_and_session_that_a_document_names_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    named = set(re.findall(rf"`((?:(?:{TOPS})/|\.github/)[\w./-]*)`", text))
    links = set(re.findall(r"\]\(([^)#:]+)\)", text))
    assert named or path.parent != ROOT
    assert {name for name in named if not (ROOT / name).exists()} == set()
    assert {link for link in links if not (path.parent / link).exists()} == set()
    assert set(" ".join(re.findall(r"nox -s((?: [a-z]\w*)+)", text)).split()) <= sessions()


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


@pytest.mark.parametrize(("before", "floors"), [("in this list: ", FLOORS), ("in this one: ", REPORTS_FLOORS)])
def test_the_order_of_packages_is_that_which_is_checked(before: str, floors: tuple[str, ...]) -> None:
    listed = ARCHITECTURE.partition(before)[2].partition("\n\n")[0]
    assert tuple(re.findall(r"`(\w+)`", listed)) == floors


def test_the_files_to_read_first_are_as_many_and_as_long_as_it_says() -> None:
    first = re.findall(r"^\d+\. `(\w+/\S+)` — ", ARCHITECTURE, re.MULTILINE)
    lines = sum((ROOT / name).read_text(encoding="utf-8").count("\n") for name in first)
    assert f"Read these {({11: 'eleven', 12: 'twelve'})[len(first)]} files first" in ARCHITECTURE
    assert f"in about {round(lines, -2):,} lines" in ARCHITECTURE


def test_the_page_of_commands_alone_has_every_exit_code_and_its_meaning() -> None:
    kinds = [kind for kind in errors.LabscaleError.__subclasses__() if kind.__module__ == errors.__name__]
    page = ROOT / "book" / "run" / "commands.md"
    listed = {int(code): meaning for code, meaning in EXIT_CODE.findall(page.read_text(encoding="utf-8"))}
    assert listed == {kind.exit_code: (inspect.getdoc(kind) or "").splitlines()[0] for kind in kinds}
    others = {*ROOT.glob("*.md"), *(ROOT / "book").rglob("*.md")} - {page}
    assert [path.name for path in others if EXIT_CODE.search(path.read_text(encoding="utf-8"))] == []


def test_stored_results_name_no_gpu_by_its_own_number() -> None:
    """That no file names a user's folder is a rule of ``test_layering``."""
    files = [path for path in (ROOT / "reports" / "results").glob("*/*/**/*") if path.is_file()]
    assert files
    named = {str(path): GPU_UUID.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {path: uuids for path, uuids in named.items() if uuids} == {}
