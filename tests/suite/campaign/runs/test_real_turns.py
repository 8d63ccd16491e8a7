"""Real ranks on the CPU: in turns as fast as alone, and trainings that share a device know nothing of each other."""

import itertools
from pathlib import Path
from statistics import geometric_mean

import pytest

from reports.figures.tables import runs_of
from reports.sets.version import read_version
from reports.verification.finding import Place
from reports.verification.stored import read_case
from suite.__main__ import main
from suite.campaign.runs.keeper import MIN_ITERATIONS
from suite.install.worker import Worker
from suite.records.folders import ALONE
from suite.records.rank_file import rank_path, read_rank_file
from suite.records.store import load_results
from suite.schema.rank_protocol import FIRST_ITERATIONS
from suite.statistics.reduce import completed_times_s, starts_of_turns
from tests.fixtures.runs.real_runs import NUM_CPUS, cartpole, matrix_of

ROUNDS = 3
ITERATIONS = 17
BOTH_LIBRARIES = cartpole("rl_games", "rsl_rl", iterations=ITERATIONS, num_steps_per_env=16, minibatch_size=512)


@pytest.mark.slow
@pytest.mark.worker
def test_turns_check_finds_both_libraries_as_fast_in_turns_as_alone(worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    matrix, out = tmp_path / "both-ways.toml", tmp_path / "out"
    matrix.write_text(matrix_of(BOTH_LIBRARIES, rounds=ROUNDS, turns_check=True, warm_up=True), encoding="utf-8")
    argv = ["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report"]
    assert main(argv) == 0
    results, copies = load_results(out), load_results(out / ALONE)
    assert [bool(record.turns) for result in results for record in result.completed] == [True] * 2 * ROUNDS
    assert [record.turns for copy in copies for record in copy.completed] == [None] * 2 * ROUNDS
    both = [
        geometric_mean([time_s for result in own for time_s in completed_times_s(result.completed)])
        for own in (results, copies)
    ]
    # Two rounds that ran at the same time would share these cores, and take about twice as long.
    assert both[0] / both[1] < 1.5


SHORTEST = FIRST_ITERATIONS + 2 * MIN_ITERATIONS  # with more than one turn
SINGLE = cartpole("rsl_rl", name="shared", iterations=SHORTEST)
# As many threads as the one alone has: with fewer, torch adds in another order, so results differ on some processors.
TOGETHER = cartpole(
    "rsl_rl", name="shared", iterations=SHORTEST, division="open", variant="trainings-2", trainings_per_gpu=2,
    cpu_threads=NUM_CPUS,
)  # fmt: skip


@pytest.mark.worker
@pytest.mark.skipif(NUM_CPUS < 2, reason="two trainings need two cores")
def test_two_trainings_run_at_the_same_time_and_learn_what_one_learns_alone(worker: Worker, tmp_path: Path) -> None:
    """One training alone, and two that share the device, the first of which has the seed of that one."""
    assert worker.python.exists()
    matrix, out = tmp_path / "shared.toml", tmp_path / "out"
    matrix.write_text(matrix_of(SINGLE, TOGETHER), encoding="utf-8")
    main(["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report"])  # 20 on a busy host
    by_number = {result.case.trainings_per_gpu: result for result in load_results(out)}
    ((alone,), (record,)) = by_number[1].rounds, by_number[2].rounds
    assert (alone.outcome, record.outcome) == ("completed", "completed"), (alone.reason, record.reason)
    first, second = record.ranks
    assert [rank.settings["seed"] for rank in record.ranks] == [42, 43]
    assert first.parameters_sha256 == alone.ranks[0].parameters_sha256  # whatever ran beside it
    assert first.parameters_sha256 != second.parameters_sha256
    assert record.transport is None
    assert record.turns is not None
    starts = starts_of_turns(record)
    assert len(starts) == record.turns.turns > 1
    spans = [spans_of(out / "raw" / record.case.case_id / "r0", training) for training in (0, 1)]
    for start, stop in itertools.pairwise((*starts, record.case.iterations)):
        (begin, end), (other_begin, other_end) = ((own[start][0], own[stop - 1][1]) for own in spans)
        assert max(begin, other_begin) < min(end, other_end)  # their turns overlap, however late a core is
    assert record.case.frames_per_iteration == 2 * alone.case.frames_per_iteration
    for path in sorted((out / "cases").rglob("*.json")):
        place = Place(out).at(path)
        assert read_case(place)
        assert place.findings == []


@pytest.mark.worker
@pytest.mark.skipif(NUM_CPUS < 2, reason="two ranks need two cores")
def test_where_only_what_is_learned_counts_two_ranks_learn_one_policy_and_have_no_speed(
    worker: Worker, tmp_path: Path
) -> None:
    """``tests.suite.campaign.runs.test_in_turns`` checks that such runs train at the same time."""
    assert worker.python.exists()
    matrix, out = tmp_path / "learning.toml", tmp_path / "out"
    ranks = cartpole("rsl_rl", name="ranks", topologies=["1x2"])
    matrix.write_text(matrix_of(ranks, only_learning=True), encoding="utf-8")
    main(["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report"])
    ((two,),) = (result.completed for result in load_results(out))
    assert two.case.case_id == "ranks/rsl_rl-kitless-cpu-n128-1x2-learning"
    assert two.ranks[0].parameters_sha256
    assert two.ranks[0].parameters_sha256 == two.ranks[1].parameters_sha256
    assert two.transport is not None
    assert two.turns is None
    frame = runs_of(read_version(out, name="v")).every
    assert frame["wall_s"].null_count() == 0
    assert frame["iteration_s"].null_count() == frame["frames_per_s"].null_count() == 1
    for path in sorted((out / "cases").rglob("*.json")):
        place = Place(out).at(path)
        assert read_case(place)
        assert place.findings == []


def spans_of(run_dir: Path, training: int) -> list[tuple[float, float]]:
    """Begin and end of every iteration, on the clock that all processes of a host share [s]."""
    file = read_rank_file(training, rank_path(run_dir, training))
    assert file.clock is not None
    zero_s, spans = file.clock.zero_monotonic_s, list[tuple[float, float]]()
    for iteration in file.iterations:
        start_s, time_s = iteration.samples["start_s"], iteration.samples["iteration_time_s"]
        assert start_s is not None
        assert time_s is not None
        spans.append((zero_s + start_s, zero_s + start_s + time_s))
    return spans
