"""The book's table of exit codes is what the errors say of themselves, and no other document has one."""

import inspect
import re
from pathlib import Path

from suite import errors

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "book" / "run" / "commands.md"
ROW = re.compile(r"^\| (\d+) \| (.+) \|$", flags=re.MULTILINE)


def test_the_page_has_every_exit_code_and_its_meaning() -> None:
    kinds = [kind for kind in errors.LabscaleError.__subclasses__() if kind.__module__ == errors.__name__]
    assert kinds
    said = {int(code): meaning for code, meaning in ROW.findall(PAGE.read_text(encoding="utf-8"))}
    assert said == {kind.exit_code: (inspect.getdoc(kind) or "").splitlines()[0] for kind in kinds}


def test_no_other_document_has_a_table_of_them() -> None:
    others = {*ROOT.glob("*.md"), *(ROOT / "book").rglob("*.md")} - {PAGE}
    assert [path.name for path in others if ROW.search(path.read_text(encoding="utf-8"))] == []
