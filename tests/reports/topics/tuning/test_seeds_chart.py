"""What the chart of seeds draws."""

import pytest

from reports.analysis.seeds import Seeds, Size
from reports.topics.tuning.seeds_chart import points
from tests.fixtures.results.generated_results import make_case

CASE = make_case()
CURVES: dict[str, tuple[tuple[float | None, ...], list[int]]] = {
    "short": ((None, 1.0, 2.0), [1, 2]),
    "just all": (tuple(1 / 3 + index for index in range(60)), list(range(60))),
    "every third": ((None, *(index * 123.456789 for index in range(1, 121))), list(range(3, 121, 3))),
    "without rewards": ((None, None), []),
    "empty": ((), []),
}


@pytest.mark.parametrize(("curve", "iterations"), CURVES.values(), ids=CURVES)
def test_every_so_many_iterations_with_a_reward_are_drawn(
    curve: tuple[float | None, ...], iterations: list[int]
) -> None:
    found = points(Seeds(size=Size.of(CASE), case=CASE, curves={7: curve}, num_runs=1, judged=()), 7)
    assert [point["iteration"] for point in found] == iterations
    assert [point["reward"] for point in found] == pytest.approx([curve[at] for at in iterations], rel=5e-4)
