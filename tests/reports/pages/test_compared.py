"""Compared: publications with ours below them, and clocks."""

from pathlib import Path

import pytest

from reports.figures.tables import rows_by_id
from reports.pages.compared import answer, chart, clock_answer, clocks, sources, table
from reports.sets.version import Version, read_version
from tests.fixtures.results.committed_results import RESULTS, committed_version
from tests.fixtures.results.generated_results import full_results, write_results


@pytest.fixture(scope="module")
def newest() -> Version:
    return read_version(RESULTS.parent / "2026.12", name="2026.12", older=[committed_version()])


def test_ours_stand_below_theirs(newest: Version) -> None:
    headings, *rows = [line.split("\t") for line in table(newest).text.splitlines()]
    northeastern, isaaclab, ours, *_ = (dict(zip(headings, row, strict=True)) for row in rows)
    assert northeastern["Kept on 4 GPUs"] == "62.3 %"
    assert isaaclab["Kept on 4 GPUs"] == "91.3 % (89.2 % to 93.6 %)"
    assert (ours["On one GPU"], ours["Kept on 4 GPUs"]) == ("261,554 frames/s", "70.5 % (64.0 % to 77.7 %)")
    assert northeastern["Ours over theirs"].endswith("1.39 (1.01 to 1.91) on 4 GPUs")
    assert [row[2] for row in rows if row[0].startswith("Shadow Hand with camera")] == ["33.6 hours", "30,483 frames/s"]


def test_answers_have_task_library_ranges_and_both_clocks(newest: Version) -> None:
    kept = answer(newest).text
    assert "Ant, 1,024 per GPU, with rl_games, 83.2 % (79.7 % to 86.9 %) here, 96.0 % by R. Noroian" in kept
    said, library = clock_answer(newest).text, rows_by_id(newest)["total/library_difference"]
    assert "in the median of 51 pairs; single pairs lie between -30.1 % and +15.8 %, and no interval is known" in said
    assert f"differ by {100 * library['value']:+.2f} % in the median of {library['runs']} runs" in said
    assert sources(newest).text.count("Some of its shares are above the ideal") == 2
    assert "labscale, Cartpole: 100% on 1" in chart(newest).alt_text


def test_every_pair_is_in_the_table_of_clocks(newest: Version) -> None:
    rows = [line.split("\t") for line in clocks(newest).text.splitlines()[1:]]
    assert sum(int(row[2]) for row in rows) == sum(len(one.pairs) for one in committed_version().sets) == 51
    (wide,) = (row for row in rows if row[4] == "-30.1 %")
    assert wide[0] == "h200-x4-pairs-4: ant-weak/rl_games-kitless-n4096-1x4"


def test_a_difference_of_clocks_is_that_of_the_stored_pairs() -> None:
    version = committed_version()
    for one in version.sets:
        for pair in one.pairs:
            row = rows_by_id(version)[f"{one.name}/{pair.case_id}/isaaclab_difference"]
            own = [other.difference for other in one.pairs if other.case_id == pair.case_id]
            assert row["runs"] == len(own)
            if len(own) == 1:
                assert row["value"] == pytest.approx(pair.ours_s / pair.theirs_s - 1, rel=1e-6)


def test_a_version_without_curves_or_pairs_shows_theirs_alone(tmp_path: Path) -> None:
    version = read_version(write_results(full_results(), tmp_path), name="v")
    assert "pairs" not in clock_answer(version).text
    assert clocks(version).text.count("\n") == 0
    assert "R. Noroian" in table(version).text
