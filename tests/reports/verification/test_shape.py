"""Files that are not as labscale writes them: each is named with what is wrong, and ends nothing in a traceback."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from reports.env_checks import read_env_checks
from reports.verification.hashes import SUMS
from suite.campaign.runs.upstream import read_pairs
from suite.errors import StoreError
from tests.fixtures.results.damaged_results import CASE, PAIRS, VERSION, Damage, copy_without_hashes, damage, findings

BESIDE: Final = ("noise.json", "upstream.json", "packing.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return copy_without_hashes(PAIRS, tmp_path / "set")


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.parametrize("text", ["{", "\xff", "1", "[1]", '{"a": 1}', '[{"case_id": 1}]', '{"pairs": [1]}'])
def test_a_file_beside_the_cases_that_nobody_wrote_so_is_named(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text, encoding="latin-1")
    assert [(one.where, one.got[:34]) for one in findings(folder)] == [(name, "not valid (the file is not readabl")]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda d: d.update(machine_info=None), "machine_info: Input should be a valid dictionary (got None)"),
        (lambda d: d.update(benchmarks=None), "benchmarks: Input should be a valid list"),
        (lambda d: d.update(benchmarks=[1]), "benchmarks.0: Input should be a valid dictionary (got 1)"),
        (lambda d: d.pop("commit_info"), "commit_info: Field required"),
        (lambda d: d["benchmarks"][0].update(extra_info=[]), "benchmarks.0.extra_info: Input should be a valid dict"),
        (lambda d: d["benchmarks"][0]["stats"].update(q3="much"), "benchmarks.0.stats.q3: Input should be a valid num"),
        (lambda d: d["benchmarks"][0]["stats"].update(data=[None]), "benchmarks.0.stats.data.0: Input should be a val"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_document_that_is_none_of_pytest_benchmarks_is_named(folder: Path, change: Damage, fault: str) -> None:
    damage(folder / CASE, change)
    (found,) = (one for one in findings(folder) if one.where == CASE)
    assert found.got.startswith(f"not valid ({fault}")


@pytest.mark.parametrize("line", ["word", "0123  /etc/passwd", "0123  ../other.json"])
def test_lines_of_hashes_that_name_nothing_of_the_set_are_missing(folder: Path, line: str) -> None:
    (folder / SUMS).write_text(f"{line}\n")
    (found,) = (one for one in findings(folder) if one.got == "missing")
    assert found.where == line.rsplit(maxsplit=1)[-1]


def test_a_report_reads_no_pairs_and_no_checks_of_another_shape(tmp_path: Path) -> None:
    path = tmp_path / "upstream.json"
    assert read_pairs(path) == ()
    path.write_text('[{"case_id": "a", "round": "first"}]')
    with pytest.raises(StoreError, match=r"upstream\.json is not readable: 0\.round: .*Copy it again"):
        read_pairs(path)
    path.unlink()
    checks: dict[str, Any] = {}
    (tmp_path / "host.json").write_text(str(checks))
    with pytest.raises(StoreError, match=re.escape("host.json is not readable: host: Field required (got {})")):
        read_env_checks(tmp_path)
    assert read_env_checks(VERSION / "env_check") != ()
