"""Numbers in words."""

import pytest

from suite.files.wording import three_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3.5749, "3.57"), (42, "42.0"), (99.94, "99.9"), (99.96, "100"), (-99.96, "-100"), (100.4, "100"),
        (1234.6, "1235"), (0, "0.00"),
    ],
)  # fmt: skip
def test_a_number_has_three_digits_and_all_before_the_point(value: float, text: str) -> None:
    assert three_digits(value) == text
