"""The list of pages is that of the texts, and every session that reads results has its module."""

from importlib.util import find_spec

import pytest

from reports.__main__ import MODULES, main
from reports.display.page import PAGES_FOLDER
from reports.site.contents import PAGES
from suite.errors import UsageError


def test_every_text_is_in_the_list_of_pages_and_has_a_module() -> None:
    texts = {path.stem for path in PAGES_FOLDER.glob("*.md")}
    assert texts == {page.text for page in PAGES}
    assert texts <= {path.stem for path in PAGES_FOLDER.glob("*.py")}


def test_every_session_has_a_module() -> None:
    assert [name for name in MODULES.values() if find_spec(name) is None] == []


def test_a_session_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("reprot", []) == UsageError.exit_code
    assert "'reprot'" in capsys.readouterr().err
