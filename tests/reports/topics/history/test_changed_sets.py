"""Result sets that a change adds, changes or removes, and the Markdown that tells of them."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from reports.topics.history import markdown as comparison_markdown
from reports.topics.history.changed_sets import ChangedSet, changed_sets
from reports.topics.history.command import main
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results

GOLDEN = ROOT / "tests" / "golden" / "comparison.md"
QUIET = (1.0, 1.002, 1.004, 0.998, 1.001)
HOSTILE = "a|b <img src=x> @everyone #1 `x` [y](https://evil.example) **z** www.evil.example &lt;\n- \u202eend"


def results(factor: float = 1.0, *, hostile: str = "") -> list[CaseResult]:
    cases = [make_case(world_size=ranks) for ranks in (1, 2)]
    found = [make_result(case, *(factor * time_s / case.world_size for time_s in QUIET)) for case in cases]
    if hostile:
        found[1] = replace(
            found[1],
            rounds=tuple(
                replace(record, environment=replace(record.environment, cpu_model=hostile))
                for record in found[1].rounds
            ),
        )
    return found


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """What was there, and a change to it: one set of each kind."""
    before, after = tmp_path / "before", tmp_path / "after"
    for tree in (before, after):
        write_results(results(), tree / "2026.9" / "desk")
        write_results(results(), tree / "2026.11" / "kept")
    write_results(results(), before / "2026.11" / "rack")
    write_results(results(1.05), after / "2026.11" / "rack")
    write_results(results(), before / "2026.11" / "gone")
    write_results(results(hostile=HOSTILE), after / "2026.12" / "desk")
    write_results(results(), after / "2026.12" / "new")
    return before, after


def told(before: Path, after: Path) -> dict[str, ChangedSet]:
    return {one.name: one for one in changed_sets(before, after, threshold=0.02)}


def test_each_set_that_differs_is_compared_with_what_came_before(trees: tuple[Path, Path]) -> None:
    found = told(*trees)
    assert {name: (one.kind, one.since) for name, one in found.items()} == {
        "2026.11/rack": ("changed", "2026.11/rack"),
        "2026.11/gone": ("removed", None),
        "2026.12/desk": ("added", "2026.9/desk"),
        "2026.12/new": ("added", None),
    }
    changed, added = found["2026.11/rack"].comparison, found["2026.12/desk"].comparison
    assert changed is not None
    assert {case.word for case in changed.cases} == {"regression"}
    assert added is not None
    assert [case.word for case in added.cases] == ["unchanged", "incomparable"]
    assert "No earlier version has a set of this name" in found["2026.12/new"].reason
    assert told(trees[1], trees[1]) == {}


def test_an_older_version_that_is_added_later_is_not_compared_with_newer_ones(trees: tuple[Path, Path]) -> None:
    before, after = trees
    write_results(results(), after / "2026.8" / "desk")
    assert told(before, after)["2026.8/desk"].since is None


def test_what_cannot_be_compared_says_why(trees: tuple[Path, Path]) -> None:
    before, after = trees
    (after / "2026.11" / "rack" / "cases" / "broken.json").write_text("{")
    (after / "2026.12" / "new" / "cases" / "broken.json").write_text("{")
    found = told(before, after)
    assert found["2026.11/rack"].comparison is None
    assert "broken.json" in found["2026.11/rack"].error
    assert found["2026.12/new"].reason == "It cannot be read."
    assert "broken.json" in found["2026.12/new"].error


def test_the_markdown_is_as_it_was_looked_at(trees: tuple[Path, Path], tmp_path: Path) -> None:
    before, after = trees
    failed = failed_result(make_case(), outcome="oom", reason="out of memory")
    write_results([failed, make_result(make_case(world_size=4), *QUIET)], after / "2026.11" / "rack")
    out = tmp_path / "comparison.md"
    arguments = [str(before), str(after), "--changed", "--markdown", "--out", str(out)]
    assert main(arguments) == 0
    assert out.read_text(encoding="utf-8") == GOLDEN.read_text(encoding="utf-8")


def test_one_comparison_as_markdown_keeps_the_exit_code(
    trees: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = (str(tree / "2026.11" / "rack") for tree in trees)
    assert main([before, after, "--markdown"]) == 1
    assert capsys.readouterr().out.startswith("2 regression.\n\n| Case | Verdict |")
    assert main([before, after, "--changed"]) == UsageError.exit_code


def test_a_folder_that_is_not_there_has_not_lost_its_sets(
    trees: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt AFTER once reported every set as removed, or no change, with exit code 0."""
    before, nowhere = str(trees[0]), str(tmp_path / "nowhere")
    for folder in (before, nowhere):
        assert main([folder, nowhere, "--changed", "--markdown"]) == UsageError.exit_code
        assert capsys.readouterr().err.startswith(f"There is no folder {nowhere}. AFTER is a folder of versions")
    assert main([nowhere, before, "--changed", "--markdown"]) == 0
    assert "added" in capsys.readouterr().out


def test_text_of_results_is_code_without_a_special_character() -> None:
    shown = comparison_markdown.code(HOSTILE)
    inside = shown.removeprefix("<code>").removesuffix("</code>")
    assert not set(inside) & set("|<>@`[]()!*_~:.\n\"'\\\u202e")
    assert "&#124;" in inside
    assert "&#64;everyone" in inside
    assert len(comparison_markdown.code("x" * 9999)) < 300


def test_more_sets_than_a_comment_has_room_for_are_counted() -> None:
    one = ChangedSet(name="2026.12/" + "x" * 150, kind="removed", reason="Gone.")
    text = comparison_markdown.changes([one] * 1000)
    assert len(text) < comparison_markdown.MAX_CHARACTERS + 200
    left = 1000 - text.count("###")
    assert f"{left} more sets" in text


def test_a_set_that_is_added_has_the_verifiers_word_and_its_lines_on_the_first_page(tmp_path: Path) -> None:
    after = tmp_path / "after" / "2026.11" / "h100-x2-first"
    shutil.copytree(ROOT / "reports" / "results" / "2026.11" / after.name, after)
    (one,) = changed_sets(tmp_path / "before", tmp_path / "after", threshold=0.02)
    assert one.look is not None
    assert one.look.verified.findings == ()
    text = comparison_markdown.changes([one])
    assert re.search(r"Computed again from the samples: \d+ cases, \d+ rounds, [\d,]+ samples: nothing differs\.", text)
    assert re.search(
        r"\| <code>Ant, rl&#95;games, 1,024 on each GPU</code> \| <code>2 x H100 [^|]*</code> \| 2 \| 1\.84 \(1\.64",
        text,
    )
