"""Settings and sharing: every ratio of one setting, taken from the table of figures."""

from reports.figures.tables import rows_by_id
from reports.pages.settings import newest, table
from tests.fixtures.results.committed_results import newest_version


def test_the_table_has_the_newest_clear_ratio_of_each_comparison_as_it_is_stored() -> None:
    version = newest_version()
    rows = [row.split("\t") for row in table(version).text.splitlines()[1:]]
    assert len(rows) == len(newest(version)) == len({tuple(row[:4]) for row in rows}) > 30
    figures = rows_by_id(version)
    for row, ratio in zip(rows, newest(version), strict=True):
        figure = figures[ratio.pair.id]
        assert row[4].startswith(f"{figure['value']:.2f}")
        assert row[5] == figure["status"]
    alike = {row[1] for row in rows if row[0] == "RL library"}
    assert {"Ant, 4,096, 4 trainings", "Cartpole, 4,096, PhysX", "Cartpole, 4,096"} <= alike
    assert "Ant, 4,096" not in alike
    shared = {row[3] for row in rows if row[0] == "Trainings at once"}
    assert shared == {"2 trainings", "4 trainings", "2 trainings with MPS", "4 trainings with MPS"}
