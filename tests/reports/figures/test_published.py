"""Numbers of others: read with their rounding, and figures that follow from them."""

from pathlib import Path
from typing import Any

import pytest

from reports.figures.published import parse_number, read_published
from reports.figures.tables import rows_by_id
from suite.errors import ReportError
from tests.fixtures.results.committed_results import committed_version


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("2.7M", 2.65e6, 2.75e6),
        ("950k", 945e3, 955e3),
        ("64k", 63.5e3, 64.5e3),
        ("896156", 896155.5, 896156.5),
        ("1.4d", 32.4, 34.8),
    ],
)
def test_a_number_is_the_range_that_is_rounded_to_it(text: str, least: float, most: float) -> None:
    number = parse_number(text)
    assert (number.least, number.most) == pytest.approx((least, most))


@pytest.mark.parametrize("text", ["about 3", "1,000", "2.7G", "", 5])
def test_what_is_no_number_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="no number"):
        parse_number(text)


def test_a_table_without_a_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    path.write_text('source = []\n[[table]]\nsource = "x"\nname = "n"\ntitle = "t"\nrows = []\n')
    with pytest.raises(ReportError, match="no \\[\\[source\\]\\] is named x"):
        read_published(path)
    path.write_text('[[source]]\nname = "x"\n')
    with pytest.raises(ReportError, match="not valid"):
        read_published(path)


def figures(start: str, end: str) -> list[dict[str, Any]]:
    rows = rows_by_id(committed_version()).items()
    return [dict(row) for name, row in rows if name.startswith(start) and name.endswith(end)]


def test_shares_of_the_ideal_speed_follow_from_printed_numbers() -> None:
    kept = figures("northeastern/cartpole/", "/frames_per_s_kept")
    assert {row["id"].split("/")[2]: round(row["value"], 2) for row in kept} == {"2": 0.86, "4": 0.62, "8": 0.46}
    (hours,) = figures("pai/shadow/", "_kept")
    assert (hours["low"], hours["value"], hours["high"]) == pytest.approx((0.65, 0.68, 0.70), abs=0.005)


def test_ours_over_theirs_is_of_as_many_gpus_as_shipped() -> None:
    own = "h200-x4-full/ant-weak/rl_games-kitless-n4096-1x4/frames_per_s"
    row, ours = rows_by_id(committed_version())[f"{own}_of_northeastern"], rows_by_id(committed_version())[own]
    assert row["value"] == pytest.approx(ours["value"] / 344864)
    assert row["low"] == pytest.approx(ours["low"] / 344864.5)
    every = figures("", "_of_isaaclab")
    assert every
    assert all("gpus=1&" in row["over"] if row["of"].endswith("1x1") else "gpus=4&" in row["over"] for row in every)
