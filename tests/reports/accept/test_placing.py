"""Where a value stands among those of other machines: only a whole interval beyond all of them is slow or fast."""

from collections.abc import Mapping, Sequence

import pytest

from reports.accept.parts import Word, placed

OTHERS = {"a": (1.0, 1.1, 1.21), "b": (1.5,)}  # geometric means 1.1 and 1.5
NEVER = {"a": (0.0, 0.0), "b": (0.0,)}  # a share that may be 0, which is placed by its range


@pytest.mark.parametrize(
    ("values", "others", "word"),
    [
        ((2.0, 2.01, 2.02), OTHERS, "slow"),
        ((0.8, 1.0, 1.2), OTHERS, "within"),  # its interval reaches into the range
        ((1.0, 1.001, 1.002), OTHERS, "fast"),
        ((4.0, 8.0, 16.0), NEVER, "slow"),
        ((0.0, 8.0, 9.0), NEVER, "within"),
        ((0.0, 9.0), NEVER, "open"),
    ],
)
def test_a_word_for_a_value(values: Sequence[float], others: Mapping[str, Sequence[float]], word: Word) -> None:
    assert placed(values, others).word == word
