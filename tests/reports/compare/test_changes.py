"""Campaigns that a change adds, changes or removes, and the Markdown that tells of them."""

import re
import shutil
from pathlib import Path

import pytest

from reports.__main__ import main as session
from reports.compare import changes as comparison_changes
from reports.compare.changes import changes
from reports.compare.text import code
from reports.verification.finding import Finding
from reports.verification.first import Verified
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.schema.record import CaseResult
from tests.fixtures.results.committed_results import RESULTS
from tests.fixtures.results.generated_machines import elsewhere
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results
from tests.reports.compare.test_comparison import QUIET, results

GOLDEN = ROOT / "tests" / "golden" / "comparison.md"
HOSTILE = "a|b <img src=x> @everyone #1 `x` [y](https://evil.example) **z** www.evil.example &lt;\n- \u202eend"


def hostile_results() -> list[CaseResult]:
    first, second = results()
    return [first, *elsewhere([second], cpu_model=HOSTILE)]


@pytest.fixture
def trees(tmp_path: Path) -> tuple[Path, Path]:
    """What was there, and a change to it: one campaign of each kind."""
    before, after = tmp_path / "before", tmp_path / "after"
    for tree in (before, after):
        write_results(results(), tree / "2026.9" / "desk")
        write_results(results(), tree / "2026.11" / "kept")
    write_results(results(), before / "2026.11" / "rack")
    write_results(results(factor=1.05), after / "2026.11" / "rack")
    write_results(results(), before / "2026.11" / "gone")
    write_results(hostile_results(), after / "2026.12" / "desk")
    write_results(results(), after / "2026.12" / "new")
    return before, after


def sections(before: Path, after: Path) -> dict[str, str]:
    """Title of each section -> its text, as characters."""
    text = re.sub(r"&#(\d+);", lambda match: chr(int(match[1])), changes(before, after, threshold=0.02))
    parts = (part.partition("\n") for part in text.split("### ")[1:])
    return {title.replace("<code>", "").replace("</code>", ""): rest for title, _, rest in parts}


def test_an_older_version_that_is_added_later_is_not_compared_with_newer_ones(trees: tuple[Path, Path]) -> None:
    write_results(results(), trees[1] / "2026.8" / "desk")
    assert "2026.8/desk, added" in sections(*trees)
    assert sections(trees[1], trees[1]) == {}


def test_what_cannot_be_read_says_why(trees: tuple[Path, Path]) -> None:
    (trees[1] / "2026.11" / "rack" / "cases" / "broken.json").write_text("{")
    (trees[1] / "2026.12" / "new" / "cases" / "broken.json").write_text("{")
    texts = sections(*trees)
    for title in ("2026.11/rack, changed", "2026.12/new, added"):
        assert "cannot be read" in texts[title]
        assert "broken.json" in texts[title]


def test_the_markdown_is_as_it_was_looked_at(
    trees: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, after = trees
    fault = Finding(where="cases/a_b.json", what="exit_code", got="1", expected="0")
    verified = Verified(cases=2, rounds=10, samples=1800, findings=(fault, fault))
    monkeypatch.setattr(comparison_changes, "verify_folder", lambda _: verified)
    failed = failed_result(make_case(), outcome="oom", reason="out of memory")
    write_results([failed, make_result(make_case(world_size=4), *QUIET)], after / "2026.11" / "rack")
    out = tmp_path / "comparison.md"
    assert session("compare", [str(before), str(after), "--changed", "--markdown", "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8") == GOLDEN.read_text(encoding="utf-8")


def test_a_folder_that_is_not_there_has_not_lost_its_campaigns(
    trees: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A misspelt AFTER once reported every campaign as removed, or no change, with exit code 0."""
    before, nowhere = str(trees[0]), str(tmp_path / "nowhere")
    for folder in (before, nowhere):
        assert session("compare", [folder, nowhere, "--changed", "--markdown"]) == UsageError.exit_code
    capsys.readouterr()
    assert session("compare", [nowhere, before, "--changed", "--markdown"]) == 0
    assert "added" in capsys.readouterr().out


def test_text_of_results_is_code_without_a_special_character() -> None:
    shown = code(HOSTILE)
    inside = shown.removeprefix("<code>").removesuffix("</code>")
    assert not set(inside) & set("|<>@`[]()!*_~:.\n\"'\\\u202e")
    assert "&#124;" in inside
    assert "&#64;everyone" in inside
    assert len(code("x" * 9999)) < 300


def test_more_faults_and_campaigns_than_a_comment_has_room_for_are_counted(
    trees: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison_changes, "MAX_FAULTS", 1)
    assert re.search(r"- and \d+ more", changes(*trees, threshold=0.02))
    monkeypatch.setattr(comparison_changes, "MAX_CHARACTERS", 200)
    text = changes(*trees, threshold=0.02)
    assert (text.count("###"), "3 more campaigns" in text) == (1, True)


def test_an_added_campaign_has_the_verifiers_word_and_its_shares_of_the_ideal_speed(tmp_path: Path) -> None:
    after = tmp_path / "after" / "2026.11" / "h100-x2-first"
    shutil.copytree(RESULTS / after.name, after)
    text = changes(tmp_path / "before", tmp_path / "after", threshold=0.02)
    assert re.search(
        r"Computed again from the samples: \d+ configurations, \d+ runs, [\d,]+ samples: nothing differs\.", text
    )
    assert re.search(r"\| <code>ant-weak/rl&#95;games-kitless-n2048-1x2</code> \| 0\.92 \(0\.82", text)
