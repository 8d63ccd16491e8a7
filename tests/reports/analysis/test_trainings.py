"""Which machines ran the same training, and over which iterations they are compared."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest

from reports.analysis.trainings import Training, trainings
from suite.schema.record import Case, CaseResult
from suite.statistics.reduce import window
from tests.fixtures.results.generated_results import make_case, make_record

CASE = make_case("ant-weak", scaling="weak", num_envs_global=1024, device="cuda", iterations=40)
PROBE_S = 1.5e-4


def measured(
    label: str | None, time_s: float = 1.0, *, case: Case = CASE, probe_s: float | None = PROBE_S, newton: str = "1"
) -> CaseResult:
    """One run on a machine with this label."""
    record = make_record(case, iteration_time_s=[1.0])
    count = case.iterations
    samples = {"iteration_time_s": (time_s,) * count, "core_probe_time_s": (probe_s,) * count}
    settings = {**record.ranks[0].settings, "versions.newton": newton}
    rank = replace(record.ranks[0], samples=samples, settings=settings)
    run = replace(record, ranks=(rank,), environment=replace(record.environment, host_label=label))
    return CaseResult(case=case, rounds=(run,))


def of_one_training(*results: CaseResult) -> Training:
    (found,) = trainings(results)
    return found


def labels(found: Sequence[Training]) -> list[list[str]]:
    return [[machine.label for machine in training.machines] for training in found]


def test_machines_of_one_training_have_the_times_and_probes_of_their_runs() -> None:
    found = of_one_training(measured("a", 2.0), measured("b", 3.0), measured("a", 2.5))
    a, b = found.machines
    assert (a.label, a.gpu) == ("a", found.model.gpus[0])
    assert [time for time, _ in a.runs] == pytest.approx([math.log(2.0), math.log(2.5)])
    assert [time for time, _ in b.runs] == pytest.approx([math.log(3.0)])
    assert [probe for machine in (a, b) for _, probe in machine.runs] == pytest.approx([math.log(PROBE_S)] * 3)
    assert found.number_with(a.gpu) == 2


def test_the_window_of_the_shortest_run_counts_for_all() -> None:
    """The longer run is slow only after the iterations that both have."""
    (short,) = measured("a").rounds
    longer = replace(CASE, iterations=100)
    result = measured("b", case=longer)
    times_s = (1.0,) * 40 + (9.0,) * 60
    rank = result.rounds[0].ranks[0]
    rank = replace(rank, samples={**rank.samples, "iteration_time_s": times_s})
    slow_later = replace(result, rounds=(replace(result.rounds[0], ranks=(rank,)),))
    found = of_one_training(measured("a"), slow_later)
    assert found.iterations == window(short)
    assert [machine.runs[0][0] for machine in found.machines] == [0.0, 0.0]


def test_other_seeds_and_series_are_the_same_training_and_other_work_is_not() -> None:
    series = replace(CASE, series="ant-physics", case_id="ant-physics/x", seed=7)
    assert labels(trainings([measured("a"), measured("b", case=series)])) == [["a", "b"]]
    larger = replace(CASE, minibatch_size=2 * CASE.minibatch_size)
    assert trainings([measured("a"), measured("b", case=larger)]) == ()
    tuned = replace(CASE, division="open")
    assert trainings([measured("a", case=tuned), measured("b", case=tuned)]) == ()
    assert trainings([measured("a"), measured("b", newton="2")]) == ()


def test_a_machine_without_label_or_probe_is_left_out() -> None:
    others = [measured("a"), measured("b")]
    assert labels(trainings([*others, measured(None), measured("c", probe_s=None)])) == [["a", "b"]]
    assert trainings([measured("a"), measured("a")]) == ()  # one machine
