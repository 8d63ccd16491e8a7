"""What a page's cells leave, and cells that end in another way than by themselves."""

from pathlib import Path

import pytest

from reports.sets.version import Version
from reports.site.book import _notebook
from reports.site.cells import run_cells, run_together
from suite.errors import ReportError

SHOWN = "from reports.display.html import Html\nshown = Html(markup='<p>1</p>', text='1')\n"


def outputs_of(folder: Path, *cells: str) -> list[list[dict[str, str]]]:
    """Return what each cell of a page shows, by MIME type."""
    text = "".join(f"\n```{{code-cell}}\n{cell}\n```\n" for cell in cells)
    page = _notebook("page", f"---\ntitle: x\ndescription: x\n---\n{text}")
    run_together([run_cells({"page": page}, Version(name="", folder=folder, sets=()), folder)])
    return [[output.data for output in cell.outputs] for cell in page.cells if cell.cell_type == "code"]


def test_a_cell_shows_its_last_expression_and_hands_on_its_names_without_start_up_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    startup = tmp_path / ".ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "00.py").write_text("raise SystemExit", encoding="utf-8")  # a user's, of IPython
    monkeypatch.setenv("HOME", str(tmp_path))
    cells = (SHOWN, "shown", "None", "other = shown")
    assert outputs_of(tmp_path, *cells) == [[], [{"text/html": "<p>1</p>", "text/plain": "1"}], [], []]


@pytest.mark.parametrize(
    ("cell", "cause"),
    [
        ("raise ValueError('no such host')", "exit code 1: .*ValueError: no such host$"),
        ("import os; os.kill(os.getpid(), 9)", "exit code -9: it said nothing"),
    ],
)
def test_a_cell_that_ends_the_pages_process_is_a_sentence(tmp_path: Path, cell: str, cause: str) -> None:
    with pytest.raises(ReportError, match=cause):
        outputs_of(tmp_path, cell)
