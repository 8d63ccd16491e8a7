"""Real ranks on the CPU: in turns as fast as alone, and trainings that share a device know nothing of each other."""

import itertools
from collections.abc import Callable
from pathlib import Path
from statistics import geometric_mean

import pytest

from reports.figures.tables import runs_of
from reports.sets.version import read_version
from reports.verification.finding import Place
from reports.verification.stored import read_case
from suite.__main__ import main
from suite.campaign.runs.keeper import MIN_ITERATIONS
from suite.errors import RunsFailed
from suite.install.worker import Worker
from suite.records.folders import ALONE
from suite.records.rank_file import rank_path, read_rank_file
from suite.records.store import load_results
from suite.schema.rank_protocol import FIRST_ITERATIONS
from suite.schema.record import RunRecord
from suite.statistics.reduce import completed_times_s, starts_of_turns
from tests.fixtures.runs.real_runs import NUM_CPUS, cartpole, matrix_of

pytestmark = [pytest.mark.worker, pytest.mark.skipif(NUM_CPUS < 2, reason="two trainings or ranks need two cores")]

ROUNDS = 3
ITERATIONS = 17
BOTH_LIBRARIES = cartpole("rl_games", "rsl_rl", iterations=ITERATIONS, num_steps_per_env=16, minibatch_size=512)
SHORTEST = FIRST_ITERATIONS + 2 * MIN_ITERATIONS  # with more than one turn
SINGLE = cartpole("rsl_rl", name="shared", iterations=SHORTEST)
# As many threads as the one alone has: with fewer, torch adds in another order, so results differ on some processors.
TOGETHER = cartpole(
    "rsl_rl", name="shared", iterations=SHORTEST, division="open", variant="trainings-2", trainings_per_gpu=2,
    cpu_threads=NUM_CPUS,
)  # fmt: skip


@pytest.fixture(scope="module")
def bench(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Run a matrix on the CPU, and return the folder of its campaign."""
    assert worker.python.exists()

    def run(matrix: str) -> Path:
        folder = tmp_path_factory.mktemp("campaign")
        (folder / "own.toml").write_text(matrix, encoding="utf-8")
        words = ("--matrix", str(folder / "own.toml"), "--device", "cpu", "--out", str(folder / "out"), "--no-report")
        assert main(["bench", *words]) in (0, RunsFailed.exit_code)  # on a busy host
        return folder / "out"

    return run


@pytest.mark.slow
def test_turns_check_finds_both_libraries_as_fast_in_turns_as_alone(bench: Callable[[str], Path]) -> None:
    out = bench(matrix_of(BOTH_LIBRARIES, rounds=ROUNDS, turns_check=True, warm_up=True))
    results, copies = load_results(out), load_results(out / ALONE)
    assert [bool(record.turns) for result in results for record in result.completed] == [True] * 2 * ROUNDS
    assert [record.turns for copy in copies for record in copy.completed] == [None] * 2 * ROUNDS
    both = [
        geometric_mean([time_s for result in own for time_s in completed_times_s(result.completed)])
        for own in (results, copies)
    ]
    # Two rounds that ran at the same time would share these cores, and take about twice as long.
    assert both[0] / both[1] < 1.5


@pytest.fixture(scope="module")
def shared(bench: Callable[[str], Path]) -> Path:
    """One training alone, and two that share the device, the first of which has the seed of that one."""
    return bench(matrix_of(SINGLE, TOGETHER))


@pytest.fixture(scope="module")
def learning(bench: Callable[[str], Path]) -> Path:
    """Two ranks of which only what they learn counts."""
    return bench(matrix_of(cartpole("rsl_rl", name="ranks", topologies=["1x2"]), only_learning=True))


def of_shared(out: Path) -> tuple[RunRecord, RunRecord]:
    """The run alone, and that of two trainings."""
    by_number = {result.case.trainings_per_gpu: result for result in load_results(out)}
    ((alone,), (together,)) = by_number[1].rounds, by_number[2].rounds
    assert (alone.outcome, together.outcome) == ("completed", "completed"), (alone.reason, together.reason)
    return alone, together


def test_two_trainings_learn_what_one_learns_alone(shared: Path) -> None:
    alone, together = of_shared(shared)
    first, second = together.ranks
    assert [rank.settings["seed"] for rank in together.ranks] == [42, 43]
    assert first.parameters_sha256 == alone.ranks[0].parameters_sha256  # whatever ran beside it
    assert first.parameters_sha256 != second.parameters_sha256
    assert together.transport is None
    assert together.case.frames_per_iteration == 2 * alone.case.frames_per_iteration


def test_two_trainings_run_at_the_same_time_in_every_turn(shared: Path) -> None:
    _, together = of_shared(shared)
    assert together.turns is not None
    starts = starts_of_turns(together)
    assert len(starts) == together.turns.turns > 1
    spans = [spans_of(shared / "raw" / together.case.case_id / "r0", training) for training in (0, 1)]
    for start, stop in itertools.pairwise((*starts, together.case.iterations)):
        (begin, end), (other_begin, other_end) = ((own[start][0], own[stop - 1][1]) for own in spans)
        assert max(begin, other_begin) < min(end, other_end)  # their turns overlap, however late a core is


def test_where_only_what_is_learned_counts_two_ranks_learn_one_policy_and_have_no_speed(learning: Path) -> None:
    """``tests.suite.campaign.runs.test_in_turns`` checks that such runs train at the same time."""
    ((two,),) = (result.completed for result in load_results(learning))
    assert two.case.case_id == "ranks/rsl_rl-kitless-cpu-n128-1x2-learning"
    assert two.ranks[0].parameters_sha256
    assert two.ranks[0].parameters_sha256 == two.ranks[1].parameters_sha256
    assert two.transport is not None
    assert two.turns is None
    frame = runs_of(read_version(learning, name="v")).every
    assert frame["wall_s"].null_count() == 0
    assert frame["iteration_s"].null_count() == frame["frames_per_s"].null_count() == 1


def test_their_cases_can_be_verified(shared: Path, learning: Path) -> None:
    places = [Place(out).at(path) for out in (shared, learning) for path in (out / "cases").rglob("*.json")]
    assert [bool(read_case(place, place.root)) for place in places] == [True] * 3
    assert [place.findings for place in places] == [[]] * 3


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
