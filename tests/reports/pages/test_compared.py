"""Compared: publications with ours below them, and clocks."""

from pathlib import Path

from reports.pages.compared import clock_answer, clocks, table
from reports.sets.version import read_version
from tests.fixtures.results.committed_results import committed_version, newest_version
from tests.fixtures.results.generated_results import full_results, write_results


def test_every_pair_is_in_the_table_of_clocks() -> None:
    rows = [line.split("\t") for line in clocks(newest_version()).text.splitlines()[1:]]
    assert sum(int(row[2]) for row in rows) == sum(len(own.pairs) for own in committed_version().sets) == 51
    (wide,) = (row for row in rows if row[4] == "-30.1 %")
    assert wide[:2] == ["Ant, rl_games, 1,024 per GPU, 4 x H200", "h200-x4-pairs-4"]


def test_a_version_without_curves_or_pairs_shows_theirs_alone(tmp_path: Path) -> None:
    version = read_version(write_results(full_results(), tmp_path), name="v")
    assert "pairs" not in clock_answer(version).text
    assert clocks(version).text.count("\n") == 0
    assert "R. Noroian" in table(version).text
