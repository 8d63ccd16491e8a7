"""Docstrings are sentences that a tired reader understands at once: none begins with a bare preposition."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.architecture.test_layering import ROOT

# The reports' files follow with their redesign.
FILES: Final = (
    ROOT / "noxfile.py",
    *(path for top in ("suite", "tasks", "tests") for path in (ROOT / top).rglob("*.py")),
)
PREPOSITIONS: Final = {
    "About", "After", "Against", "Among", "As", "At", "Before", "Beside", "Between", "By", "For", "From", "In", "Like",
    "Of", "On", "Over", "Since", "Than", "Through", "To", "Under", "Until", "Up", "With", "Within", "Without",
}  # fmt: skip


def first_words(source: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each module, class and function with the first word of its docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = (ast.get_docstring(node) or "").split()
            if words:
                yield getattr(node, "name", "module"), words[0].strip(",.:;")


def with_prepositions(path: Path) -> list[str]:
    source = path.read_text(encoding="utf-8")
    return [f"{path.relative_to(ROOT)}: {name}" for name, word in first_words(source) if word in PREPOSITIONS]


def test_no_docstring_begins_with_a_preposition() -> None:
    assert len(FILES) > 500
    assert [found for path in FILES for found in with_prepositions(path)] == []


def test_the_rule_sees_one() -> None:
    source = '"""Of a round."""\n\ndef end() -> None:\n    """End it."""\n'
    assert list(first_words(source)) == [("module", "Of"), ("end", "End")]
