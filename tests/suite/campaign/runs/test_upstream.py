"""Pairs of a round of ours and one of Isaac Lab's own benchmark: what is asked, read and stored."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from suite.campaign.folder import Folder
from suite.campaign.runs import upstream
from suite.campaign.steps import print_results
from suite.errors import StoreError
from suite.records import store
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import CaseResult, Launch
from tasks.upstream import arguments, iteration_times_s
from tests.conftest import CaseMaker
from tests.fixtures.results.generated_results import make_case as generated_case
from tests.fixtures.results.generated_results import make_result
from tests.fixtures.results.stored_rounds import plain_rank, plain_round
from tests.fixtures.runs.asked_options import changed
from tests.suite.campaign.test_schedule import FIXED, campaign_of


def test_the_arguments_are_those_of_the_case(make_case: CaseMaker) -> None:
    case = make_case(device="cuda", nproc_per_node=4, overrides=("agent.algorithm.num_mini_batches=8",))
    assert " ".join(arguments(case, Path("OUT"))) == (
        "benchmark training_multigpu --num_gpus 4 --rdzv_backend c10d --rdzv_endpoint localhost:0 "
        "--rl_library rsl_rl --task Isaac-Cartpole-Direct --num_envs 32 --max_iterations 3 --seed 42 "
        "--output_path OUT agent.algorithm.num_mini_batches=8"
    )
    single = make_case(nproc_per_node=1, rl_library="rl_games")
    assert " ".join(arguments(single, Path("OUT"))) == (
        "benchmark training --device cpu --rl_library rl_games --task Isaac-Cartpole-Direct --num_envs 32 "
        "--max_iterations 3 --seed 42 --output_path OUT agent.params.config.device=cpu"
    )


def test_iteration_times_as_upstream_computes_them(make_case: CaseMaker) -> None:
    logged = {"Perf/collection_time": [1.0, 2.0], "Perf/learning_time": [0.5, 0.25]}
    assert iteration_times_s(make_case(), logged) == [1.5, 2.25]
    frames = make_case().frames_per_iteration
    logged = {"performance/step_inference_rl_update_fps": [frames / 2.0, frames / 4.0]}
    assert iteration_times_s(make_case(rl_library="rl_games"), logged) == [2.0, 4.0]


@pytest.fixture
def run_dir(tmp_path: Path, make_case: CaseMaker) -> Path:
    """A finished round of ours whose clock reads 1 % more than the library's, beside upstream's own run."""
    samples = {
        "iteration_time_s": (9.0, 2.02, 2.02),
        "rsl_rl.collection_time_s": (8.0, 1.5, 1.5),
        "rsl_rl.learning_time_s": (1.0, 0.5, 0.5),
    }
    record = plain_round(make_case(), *(plain_rank(rank, **samples) for rank in range(2)))
    store.write_record(record, tmp_path / "record.json")
    (tmp_path / "upstream").mkdir()
    theirs = {"command": ["isaaclab"], "iteration_time_s": [7.0, 1.0000000004, 1.02]}
    (tmp_path / "upstream" / "upstream.json").write_text(json.dumps(theirs))
    return tmp_path


def test_a_pair_compares_medians_of_rank_0_without_the_first_iteration(run_dir: Path, make_case: CaseMaker) -> None:
    pair = upstream.read_pair(make_case(), 0, run_dir)
    assert pair
    assert (pair.ours_s, pair.theirs_s, pair.library_s) == pytest.approx((2.02, 1.01, 2.0))
    assert pair.theirs_iterations_s == (7.0, 1.0, 1.02)  # to nine digits, as our own
    assert pair.difference == pytest.approx(1.0)
    assert pair.clock_difference == pytest.approx(0.01)


def test_a_missing_side_is_none_and_a_corrupt_one_an_error(run_dir: Path, make_case: CaseMaker) -> None:
    theirs = run_dir / "upstream" / "upstream.json"
    theirs.write_text("{")
    with pytest.raises(StoreError, match=r"upstream\.json is not readable"):
        upstream.read_pair(make_case(), 0, run_dir)
    theirs.write_text(json.dumps({"iteration_time_s": [7.0, 1.0]}))
    with pytest.raises(StoreError, match="has 2 iterations, but its run has 3"):
        upstream.read_pair(make_case(), 0, run_dir)
    theirs.unlink()
    assert upstream.read_pair(make_case(), 0, run_dir) is None


def test_a_real_difference_stays_under_drift() -> None:
    """Pairs on a machine that becomes faster, ours first."""
    drift = (1.10, 1.08, 1.06, 1.04, 1.02, 1.00)
    pairs = [
        upstream.Pair(case_id="a/1", round=index, ours_s=1.05 * ours, theirs_s=theirs, library_s=None)
        for index, (ours, theirs) in enumerate(zip(drift[::2], drift[1::2], strict=True))
    ]
    assert upstream.bracketed_differences(pairs) == pytest.approx([0.05] * 4)


def test_upstream_is_missing_only_beside_a_completed_round_it_can_run(run_dir: Path, make_case: CaseMaker) -> None:
    assert not upstream.needs_upstream(make_case(), run_dir)
    (run_dir / "upstream" / "upstream.json").unlink()
    assert upstream.needs_upstream(make_case(), run_dir)
    assert not any(upstream.needs_upstream(make_case(rl_library=name), run_dir) for name in ("skrl", "sb3", "torchrl"))


def test_what_upstream_trained_is_not_kept(run_dir: Path, make_case: CaseMaker) -> None:
    def trains(launch: Launch, _: object) -> LaunchResult:
        assert launch.argv[1:] == ("-m", "tasks.upstream", str(run_dir / "upstream"))
        logs = run_dir / "upstream" / "logs" / "rsl_rl"
        logs.mkdir(parents=True)
        for name in ("model_0.pt", "last.pth", "events.out.tfevents"):
            (logs / name).touch()
        return LaunchResult(exit_code=0, ended_by=None, started_utc="2026-11-21T00:00:00+00:00", wall_time_s=1.0)

    ours = Launch(case=make_case(), round=0, argv=("python3",), env={}, run_dir=str(run_dir))
    assert upstream.run_pair(ours, trains) == upstream.read_pair(make_case(), 0, run_dir)
    assert [path.name for path in (run_dir / "upstream" / "logs" / "rsl_rl").iterdir()] == ["events.out.tfevents"]


ONE, OTHER = make_result(generated_case("ant-weak", scaling="weak"), 1.0, 1.2), make_result(generated_case(), 2.0, 2.0)


@pytest.fixture
def folder(tmp_path: Path, plain_case_files: dict[Path, CaseResult]) -> Folder:
    """Two cases, stored, with upstream's runs beside their rounds."""
    folder = Folder(root=tmp_path)
    for result in (ONE, OTHER):
        store.write_cases({folder.case_path(result.case): result})
        for record in result.rounds:
            store.write_record(record, folder.record_path(record.case, record.round))
            theirs = upstream.folder_of(folder.run_dir(record.case, record.round)) / "upstream.json"
            theirs.parent.mkdir()
            theirs.write_text(json.dumps({"iteration_time_s": [1.0] * record.case.iterations}))
    assert len(plain_case_files) == 2
    return folder


def test_a_command_for_some_cases_keeps_the_pairs_of_the_others(folder: Folder) -> None:
    pairs = upstream.write_pairs(folder)
    assert len(pairs) == 4
    campaign = campaign_of(FIXED, (OTHER.case,), upstream=True)
    print_results(replace(campaign, options=changed(campaign.options, out=folder.root), results=(OTHER,)))
    assert list(upstream.read_pairs(folder.root / "upstream.json")) == pairs


def test_pairs_that_are_none_any_more_do_not_stay(folder: Folder, plain_case_files: dict[Path, CaseResult]) -> None:
    theirs = folder.root / "upstream.json"
    upstream.write_pairs(folder)
    for result in (ONE, OTHER):
        lost = [replace(record, outcome="crashed", reason="x") for record in result.rounds]
        plain_case_files[folder.case_path(result.case)] = replace(result, rounds=tuple(lost))
    assert upstream.write_pairs(folder) == []
    assert upstream.read_pairs(theirs) == ()
    theirs.unlink()
    assert (upstream.write_pairs(folder), theirs.exists()) == ([], False)  # a campaign without pairs has no such file
