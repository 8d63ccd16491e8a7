"""The plan names cases whose stored rounds warm up for too long."""

from dataclasses import replace

from suite.campaign.planning.too_short import too_short
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import make_case, make_record


def stored(iterations: int, *warm_ups: int) -> CaseResult:
    """A round for each length of the warm-up, whose iterations take three times as long."""
    case = make_case(iterations=iterations)
    rounds = []
    for index, warm_up in enumerate(warm_ups):
        record = make_record(case, index=index)
        times_s = (3.0,) * warm_up + (1.0,) * (iterations - warm_up)
        (rank,) = record.ranks
        samples = {**rank.samples, "iteration_time_s": times_s}
        rounds.append(replace(record, ranks=(replace(rank, samples=samples),)))
    return CaseResult(case=case, rounds=tuple(rounds))


def test_a_warm_up_of_half_the_iterations_in_a_quarter_of_the_rounds_is_too_long() -> None:
    long = stored(60, 1, 1, 1, 12)
    (sentence,) = too_short([make_case(iterations=20)], [long])
    for said in ("Isaac-Cartpole-Direct", "128 environments", "20 iterations", "1 of 4", "10 iterations"):
        assert said in sentence
    assert too_short([make_case(iterations=26)], [long]) == []  # half of them is 13
    assert too_short([make_case(iterations=20)], [stored(60, 1, 1, 1, 1, 12)]) == []


def test_other_work_fewer_iterations_and_few_rounds_show_nothing() -> None:
    case = make_case(iterations=20)
    assert too_short([replace(case, num_envs=64)], [stored(60, 12, 12, 12, 12)]) == []
    assert too_short([case], [stored(18, 9, 9, 9, 9)]) == []
    assert too_short([case], [stored(60, 12, 12, 12)]) == []
