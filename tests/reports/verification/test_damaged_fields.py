"""Stored files whose fields are gone, of another type or empty, one after another: never said in Python's words."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from reports.__main__ import main as session
from reports.figures.tables import FILE, write
from reports.sets.findings import read_findings
from reports.sets.version import read_version
from reports.verification.figures import COLUMNS
from reports.verification.finding import Finding
from suite.errors import ReportError, ResultsDiffer, StoreError
from suite.records import store
from tests.fixtures.results.damaged_results import VERSION, copy_without_hashes

NAMES: Final = {"settings", "samples", "columns", "machine_info", "benchmarks"}  # whose fields may have any names
BENCHMARKS: Final = {"datetime", "version"}  # what pytest-benchmark alone writes, and nobody reads
PYTHONS: Final = re.compile(r"\b\w+(Error|Exception)\b|Traceback|NoneType|codec")
CASE: Final = "cases/shadow-vertical/rsl_rl-kitless-n2048-1x2-fixed_updates.json"
BESIDE: Final[dict[str, Any]] = {
    "plan.json": {"configurations": {Path(CASE).stem: 2}, "missing": {"a": "It broke."}},
    "runs.log": {"before": "0" * 64, "run": "a/r0", "outcome": "completed", "run_sha256": "0" * 64},
    "upstream.json": [
        {"configuration_id": "a", "run": 0, "ours_s": 1.0, "theirs_s": 1.0, "library_s": None},
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A set of one configuration, in a version."""
    return copy_without_hashes(VERSION / "h200-x2-pairs-2", tmp_path / "2026.11" / "set")


def damaged(root: Any, inside: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the name of each field, what is wrong with it, and the document."""
    for name, value in [*inside.items()]:
        del inside[name]
        yield name, "gone", json.dumps(root)
        inside[name] = [name] if isinstance(value, dict) else {"other": name}
        yield name, "retyped", json.dumps(root)
        inside[name] = type(value)() if value else 0
        yield name, "empty", json.dumps(root)
        inside[name] = value
        first = value[0] if isinstance(value, list) and value else value
        if isinstance(first, dict) and name not in NAMES:
            yield from damaged(root, first)


def verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[Finding]]:
    """The exit code of ``verify``, and what it finds."""
    code = session("verify", [str(folder), "--json"])
    printed = capsys.readouterr()
    assert not PYTHONS.search(printed.out + printed.err)
    return code, [Finding(**finding) for finding in json.loads(printed.out)["findings"]]


def test_each_field_of_a_configurations_file_is_needed_by_verify_or_by_the_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document, count = json.loads((folder / CASE).read_text()), 0
    for name, wrong, text in damaged(document, document):
        (folder / CASE).write_text(text)
        code, findings = verified(folder, capsys)
        named = [finding for finding in findings if finding.where == CASE and name in str(finding)]
        assert code == (ResultsDiffer.exit_code if findings else 0), name
        if wrong == "retyped" and not named and name not in BENCHMARKS:  # one that is gone may have a default
            with pytest.raises(StoreError, match=name) as refused:
                store.read_case(folder / CASE)
            assert not PYTHONS.search(str(refused.value))
        count += bool(named)
    assert count > 500


@pytest.mark.parametrize("file", BESIDE)
def test_each_field_of_a_file_beside_the_configurations_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    document = BESIDE[file]
    for name, wrong, text in damaged(document, document[0] if isinstance(document, list) else document):
        (folder / file).write_text(f"{text}\n")
        code, findings = verified(folder, capsys)
        assert code == ResultsDiffer.exit_code
        is_named = any(finding.where == file and name in str(finding) for finding in findings)
        assert is_named or (name, wrong) == ("missing", "gone") or wrong == "empty", text


def lines_damaged(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each field of a table, and the text without its line, then with a number in its place."""
    header, *lines = text.splitlines()
    for line in lines:
        name = line.partition(" = ")[0]
        yield name, "\n".join([header, *(other for other in lines if other != line)])
        yield name, text.replace(line, f"{name} = 7")


def test_each_field_of_a_weakness_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[[weakness]]\nwhere = "."\nwhat = "a"\ngot = "b"\nwhy = "It was not stored."\n'
    for name, changed in lines_damaged(text):
        (folder.parent / "weaknesses.toml").write_text(changed)
        code, findings = verified(folder.parent, capsys)
        assert code == ResultsDiffer.exit_code
        (finding,) = (finding for finding in findings if finding.where == "weaknesses.toml")
        assert f"weakness[0].{name}" in finding.got


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("report.toml", '[[set]]\nfolder = "set"\n'),
        ("findings.toml", '[[finding]]\nid = "a"\nclaim = "b"\nso_what = "c"\nstatus = "clear"\nsets = ["set"]\n'),
    ],
)
def test_each_field_that_a_version_says_of_its_sets_is_named(folder: Path, file: str, text: str) -> None:
    for name, changed in lines_damaged(text):
        (folder.parent / file).write_text(changed)
        with pytest.raises(ReportError, match=rf"{re.escape(file)}(?s:.)*\b{name}\b") as refused:
            read_findings(read_version(folder.parent, name="2026.11").folder)
        assert not PYTHONS.search(str(refused.value))


def test_each_column_of_a_table_of_figures_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    version = folder.parent
    write(version)
    path = version / FILE
    header, row, *rows = path.read_text().splitlines()
    for name in COLUMNS:
        path.write_text("\n".join([header.replace(name, f"my_{name}", 1), row, *rows]))
        _, findings = verified(version, capsys)
        assert "the columns" in [finding.what for finding in findings if finding.where == FILE]
    for changed, fault in ((row.rpartition(",")[0], "line 2"), (f"{row},", "line 2"), ("", "line 2")):
        path.write_text("\n".join([header, changed, *rows]))
        _, findings = verified(version, capsys)
        assert fault in [finding.what for finding in findings if finding.where == FILE]
