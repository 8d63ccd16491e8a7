"""What the pages *Run it* say exists: commands, sessions, faults of env_check, and the pages they link to."""

import re
import shlex

import pytest

from reports.site import guide
from suite.__main__ import parse
from suite.commands.campaigns import options_of
from suite.files.paths import ROOT
from tests.architecture.test_workflows import sessions

README = ROOT / "README.md"
PARSED = ("bench", "plan", "env_check", "build", "bundle")  # the others want folders that exist
SOURCES = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "suite" / "env_check").rglob("*.py"))


def commands() -> list[tuple[str, str]]:
    """Session and options of every command of nox in a block, each once."""
    texts = [path.read_text(encoding="utf-8") for path in (README, *guide.PAGES.values())]
    sessions_with_options = [
        (name, options.partition("  #")[0].strip())
        for text in texts
        for name, options in re.findall(r"^ *python3 -m nox -s (\w+)(?: -- ([^\n]*)|[^\n]*)$", text, re.MULTILINE)
    ]
    return list(dict.fromkeys(sessions_with_options))


@pytest.mark.parametrize(
    ("name", "options"),
    [(name, options) for name, options in commands() if name in PARSED and "--help" not in options],
)
def test_every_command_is_understood(name: str, options: str) -> None:
    parsed = parse([name, *shlex.split(options)])
    if name in ("bench", "plan"):
        options_of(parsed)


def test_every_session_is_in_the_table_and_no_other() -> None:
    page = guide.PAGES["commands"].read_text(encoding="utf-8")
    table = page.partition("| --- | --- |\n")[2].partition("\n\n")[0]
    named = [name for row in table.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted(sessions())
    assert {name for name, _ in commands()} <= sessions()


def test_every_fault_on_the_page_is_a_word_of_env_check() -> None:
    page = guide.PAGES["env-check"].read_text(encoding="utf-8")
    says = [row.split("|")[-3] for row in page.splitlines() if row.startswith("|")]
    words = {word for cell in says for word in re.findall(r"`(\w+)`", cell)}
    assert len(words) > 30
    assert {word for word in words if f'"{word}"' not in SOURCES and not word.startswith("nvml_")} == set()


def test_every_page_has_a_title_and_a_plain_description() -> None:
    for name, text in guide.sources().items():
        title, description = text.splitlines()[1:3]
        assert title.startswith('title: "'), name
        assert not set("`*[") & set(description), name
