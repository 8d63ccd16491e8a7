"""Settings and sharing: every ratio of one setting, taken from the table of figures."""

import re

from reports.display.html import together
from reports.figures.tables import rows_by_id
from reports.pages.settings import answer, beside, chart, newest, table
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
    shared = {row[3] for row in rows if row[0] == "Trainings at once"}
    assert shared == {"2 trainings", "4 trainings", "2 trainings with MPS", "4 trainings with MPS"}


def test_the_answer_is_of_trainings_alone_and_the_page_is_short() -> None:
    version = newest_version()
    assert "299" not in answer(version).text  # a policy that acts, and trains nothing
    shown = together([answer(version), chart(version), table(version), beside(version)]).markup
    words = re.sub(r"<(script|svg)\b.*?</\1>|<[^>]+>", " ", shown, flags=re.DOTALL)
    assert len(words.split()) < 1050  # 150 more say how to read it
    points = {
        (ratio.setting.column, ratio.subject)
        for ratio in newest(version)
        if ratio.is_training and ratio.estimate.interval
    }
    assert chart(version).alt_text.count("; ") == len(points) - 1
