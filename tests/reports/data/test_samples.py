"""How long a run lasted by itself, beside others."""

from dataclasses import replace

import pytest

from reports.data.samples import own_wall_s
from suite.schema.observations import TurnsTaken
from suite.statistics.reduce import iteration_times_s
from tests.fixtures.results.generated_results import make_case, make_record


def test_a_run_in_turns_lasts_as_long_as_its_own_start_and_iterations() -> None:
    record = replace(make_record(make_case(), iteration_time_s=[0.5]), wall_time_s=500.0)
    (rank,) = record.ranks
    own_s = sum(rank.phases_s.values()) + sum(iteration_times_s(record))
    taken = TurnsTaken(beside=("another",), turns=3, turn_s=2.5)
    assert own_wall_s(replace(record, turns=taken)) == pytest.approx(own_s)
    assert own_s < 100
    assert own_wall_s(record) == 500.0
    assert own_wall_s(replace(record, turns=taken, outcome="crashed")) == 500.0
    assert own_wall_s(replace(record, turns=taken, wall_time_s=None)) is None
