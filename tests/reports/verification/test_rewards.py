"""How much sooner a reward comes, computed again without the report's code."""

import math
from copy import deepcopy
from typing import Any

import pytest

from reports.verification.figures.rewards import sooner
from reports.verification.samples.stored import StoredCase, read_case
from tests.fixtures.results.damaged_results import SEEDS

TUNED = SEEDS.with_name("rl_games-kitless-n8192-1x1-wide.json")


def read(path: Any) -> StoredCase:
    stored, _ = read_case(path, path.name)
    assert stored is not None
    return stored


def with_rewards(stored: StoredCase, *columns: list[float]) -> StoredCase:
    changed = deepcopy(stored)
    for record, rewards in zip(changed.rounds, columns, strict=True):
        record["ranks"][0]["samples"]["reward_mean"] = rewards
        changed.times_s[record["round"]] = 1.0
    return changed


def test_each_seed_has_a_ratio_of_its_own() -> None:
    """The reward to reach is 90 % of the rise from 20, where the fastest seed begins, to 97."""
    shipped = with_rewards(read(SEEDS), *([float(rate * index) for index in range(100)] for rate in (1, 2, 5, 10)))
    half = with_rewards(read(TUNED), *([float(rate * index) for index in range(100)] for rate in (2, 4, 10, 20)))
    found = sooner(shipped, half)
    assert found is not None
    needed = [-(-89.3 // rate) + 3 for rate in (1, 2, 5, 10)]  # a window's median is its third value
    needed_half = [-(-89.3 // rate) + 3 for rate in (2, 4, 10, 20)]
    ratios = [one / other for one, other in zip(needed, needed_half, strict=True)]
    assert found[0] == pytest.approx(math.prod(ratios) ** 0.25)
    assert found[1] is not None
    assert found[1][0] < found[0] < found[1][1]


def test_without_a_rise_a_seed_of_its_own_or_a_run_that_gets_there_nothing_is_known() -> None:
    shipped, tuned = read(SEEDS), read(TUNED)
    assert sooner(shipped, tuned) is not None
    assert sooner(with_rewards(shipped, *([[1.0] * 100] * 4)), tuned) is None
    assert sooner(shipped, with_rewards(tuned, *([[1.0] * 100] * 4))) is None
    alike = deepcopy(tuned)
    alike.case["seed_per_round"] = False
    assert sooner(shipped, alike) is None
