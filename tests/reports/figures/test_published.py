"""Numbers of others: read with their rounding, and refused without a source."""

from pathlib import Path

import pytest

from reports.figures.published import parse_number, read_published
from suite.errors import ReportError


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
