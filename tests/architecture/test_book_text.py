"""The words of pages hold no results: every number on a page comes from the stored results."""

import re

from reports.display.page import text_paths

ALLOWED = ("Jupyter Book 2", "Isaac Lab 3.0", "Stable-Baselines3", "sb3")  # names, which are no results

_NOT_PROSE = re.compile(
    r"\A---\n.*?\n---\n"  # frontmatter
    r"|^```.*?^```$"  # code
    r"|`[^`\n]*`"  # inline code
    r"|^#+ .*$"  # headings
    r"|^\([\w-]+\)=$"  # labels
    r"|\]\([^)\n]*\)",  # targets of links
    re.DOTALL | re.MULTILINE,
)
_SPELLED = r"one|two|three|four|five|six|seven|eight|nine|ten|sixteen|dozens?|hundred|thousand|million"
_RESULT_IN_WORDS = re.compile(rf"\b(?:{_SPELLED}|half|twice)(?:[ -]\w+)? (?:times|percent|per cent)\b", re.IGNORECASE)


def typed_numbers(text: str) -> list[str]:
    # `.` matches newlines only inside the code and frontmatter alternatives, which are bounded by their fences.
    prose = _NOT_PROSE.sub(" ", _without_single_lines(text))
    for name in ALLOWED:
        prose = prose.replace(name, " ")
    return [*re.findall(r"\d[\d.,]*", prose), *(found.group() for found in _RESULT_IN_WORDS.finditer(prose))]


def _without_single_lines(text: str) -> str:
    return re.sub(r"^(?:#+ [^\n]*|%[^\n]*)$", "", text, flags=re.MULTILINE)


def test_no_number_is_typed_into_a_page() -> None:
    found = {page.name: typed_numbers(page.read_text(encoding="utf-8")) for page in text_paths()}
    assert found.keys() >= {"home.md", "tasks.md"}
    assert {page: numbers for page, numbers in found.items() if numbers} == {}
