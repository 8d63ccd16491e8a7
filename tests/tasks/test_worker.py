"""Isaac Lab trained for three iterations by every adapter, alone and with a second rank, on the CPU."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from suite.external.core_probe import LONG_ENOUGH_S
from suite.install.damage import damaged_modules, modules
from suite.install.worker import Worker
from suite.schema.record import OVERFLOW_CHECK, SAMPLE_COLUMNS, Case, Environment, RankRecord, RunRecord
from tasks.checks.physics import WARP_SETTINGS
from tasks.rank.configuration import upstreams_name
from tasks.rank.machine import nodes_of_cores
from tests.fixtures.runs.real_runs import NUM_CPUS, events, launch_of, train
from tests.fixtures.runs.trained_runs import RUNS, SERIES, Trained, TrainedRun

pytestmark = pytest.mark.worker

CLOCKS_AGREE: Final = 0.02  # relative
EPOCHS: Final = {"rl_games": 4, "rsl_rl": 5, "skrl": 8, "skrl_jax": 8, "sb3": 20, "torchrl": 5}  # of the agents
PHASES: Final = ("imports_torch", "imports", "task_config", "simulation_launch", "environment_creation")


SLOW: Final = "skrl_jax-1x1"  # with skrl too, two ranks are enough


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.slow) if name == SLOW else name for name in RUNS]
)
def trained(request: pytest.FixtureRequest) -> Trained:
    """One run, which every test below looks at. Only those of the campaign need it to run."""
    run: TrainedRun = request.getfixturevalue("run_of_campaign" if request.param in SERIES else "trained_run")
    return run(request.param)


def has_camera(case: Case) -> bool:
    return "Camera" in case.task


def numbers(rank: RankRecord, column: str) -> list[float]:
    """A column without a gap."""
    values = [value for value in rank.samples[column] if value is not None]
    assert len(values) == rank.num_iterations, f"{column} of rank {rank.rank} has gaps: {rank.samples[column]}"
    return values


def agree(ours: Sequence[float], theirs: Sequence[float]) -> bool:
    return list(ours) == pytest.approx(list(theirs), rel=CLOCKS_AGREE)


def test_every_rank_completes_every_iteration(trained: Trained) -> None:
    record = trained.record
    assert (record.outcome, record.reason, record.exit_code) == ("completed", None, 0)
    assert [(rank.rank, rank.local_rank) for rank in record.ranks] == [
        (rank, rank) for rank in range(trained.case.world_size)
    ]
    for rank in record.ranks:
        assert rank.num_iterations == trained.case.iterations == 3
        assert set(SAMPLE_COLUMNS) - {"turn"} <= set(rank.samples)
        assert "turn" not in rank.samples  # it ran alone
        assert rank.error is None


MARKED = (0.0, 0.0, 1.0)


def only_when_marked(rank: RankRecord, column: str) -> float:
    """A column that has a number in the third iteration alone, and that number."""
    first, second, third = rank.samples[column]
    assert (first, second) == (None, None), f"{column} of rank {rank.rank} was taken where nothing is marked"
    assert third is not None, column
    return third


def test_sections_add_up_to_the_iteration(trained: Trained) -> None:
    for rank in trained.record.ranks:
        assert rank.samples["marked"] == MARKED
        iteration, collection = numbers(rank, "iteration_time_s"), numbers(rank, "collection_time_s")
        learning, environment = numbers(rank, "learning_time_s"), only_when_marked(rank, "environment_step_time_s")
        assert agree([sum(parts) for parts in zip(collection, learning, strict=True)], iteration)
        simulate, inference = only_when_marked(rank, "simulate_time_s"), only_when_marked(rank, "inference_time_s")
        assert 0 < simulate < environment < environment + inference < collection[2]
        assert inference > 0
        probes_s = rank.samples["core_probe_time_s"]
        assert [probe_s is not None for probe_s in probes_s] == [
            bool(marked) or time_s >= LONG_ENOUGH_S for marked, time_s in zip(MARKED, iteration, strict=True)
        ]
        assert all(1e-6 < probe_s < 0.1 for probe_s in probes_s if probe_s is not None)
        if has_camera(trained.case):
            assert 0 < only_when_marked(rank, "render_time_s") < environment
        else:
            assert rank.samples["render_time_s"] == (None,) * 3  # nothing was rendered, which is not 0
        ends = [start + time for start, time in zip(numbers(rank, "start_s"), iteration, strict=True)]
        assert all(end <= start for end, start in zip(ends, numbers(rank, "start_s")[1:], strict=False))


def test_ranks_reduce_gradients_exactly_when_there_are_several(trained: Trained) -> None:
    distributed = trained.case.world_size > 1
    for rank in trained.record.ranks:
        calls = only_when_marked(rank, "all_reduce_calls")
        if distributed:
            assert calls >= trained.case.optimiser_steps  # the gradients of each, and what the library adds
            assert 0 < only_when_marked(rank, "all_reduce_time_s") < numbers(rank, "learning_time_s")[2]
            # The agent's networks have well over a hundred parameters; what else is summed are single numbers.
            assert only_when_marked(rank, "all_reduce_bytes") > 4 * 100 * trained.case.optimiser_steps
        else:
            assert calls == 0
            assert rank.samples["all_reduce_time_s"] == (None,) * 3  # not 0: nothing was measured
            assert rank.samples["all_reduce_bytes"] == (None,) * 3
        assert rank.settings["backend"] == ("gloo" if distributed else None)


def test_our_clock_and_the_librarys_own_agree(trained: Trained, environment: Environment, tmp_path: Path) -> None:
    """A busy machine may run something else between the two clocks of one run, and hardly of two."""
    off = clocks_that_differ(trained.record)
    if off:
        again = train(launch_of(trained.worker, trained.case, tmp_path / "r1"), environment)
        assert off.keys() & clocks_that_differ(again).keys() == set(), off


def clocks_that_differ(record: RunRecord) -> Mapping[str, tuple[Sequence[float], Sequence[float]]]:
    """The library's own figures, by rank, that ours do not match, and both; which those are is asserted."""
    frames, library = record.case.frames_per_iteration, record.case.rl_library
    off: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
    for rank in record.ranks:
        fps = {
            name: [frames / time_s for time_s in numbers(rank, column)]
            for name, column in (
                ("total_fps", "iteration_time_s"),
                ("step_inference_fps", "collection_time_s"),
            )
        }
        ours: dict[str, Sequence[float]] = {}
        own = {column for column in rank.samples if "." in column}
        if library == "rl_games":
            step_fps = frames / only_when_marked(rank, "environment_step_time_s")
            assert own == {*(f"rl_games.{name}" for name in (*fps, "step_fps")), "rl_games.update_time_s"}
            ours = {f"rl_games.{name}": values for name, values in (*fps.items(), ("step_fps", [step_fps]))}
        elif library in ("rsl_rl", "torchrl"):
            ours = {f"{library}.{name}": numbers(rank, name) for name in ("collection_time_s", "learning_time_s")}
            ours[f"{library}.total_fps"] = fps["total_fps"]
            assert own == ours.keys()
        else:
            assert own == set()  # skrl, with torch or JAX, and sb3 report no times of their own
        off |= {
            f"{name} of rank {rank.rank}": (values, numbers(rank, name))
            for name, values in ours.items()
            if not agree(values, numbers(rank, name)[-len(values) :])
        }
    return off


def test_ranks_explore_apart_and_train_one_policy(trained: Trained) -> None:
    ranks = trained.record.ranks
    assert [rank.settings["seed"] for rank in ranks] == [42 + rank.rank for rank in ranks]
    digests = {rank.parameters_sha256 for rank in ranks}
    (digest,) = digests
    assert digest is not None
    assert len(digest) == 64


def test_success_is_known_as_soon_as_an_episode_ended(trained: Trained) -> None:
    samples = trained.record.ranks[0].samples
    ended, known = ([value is not None for value in samples[name]] for name in ("episode_length_mean", "success_mean"))
    assert known[0] == ended[0]  # None, not 0: the reset before the first step ended no episode
    assert known[-1] >= ended[-1]  # skrl keeps no length yet


def test_settings_say_what_it_ran_with(trained: Trained) -> None:
    for rank in trained.record.ranks:
        settings = rank.settings
        assert (settings["device"], settings["gpu_name"], settings["num_envs"]) == ("cpu", None, trained.case.num_envs)
        assert settings["torch_num_threads"] == max(1, NUM_CPUS // trained.case.nproc_per_node)
        assert (settings["cuda_matmul_allow_tf32"], settings["cudnn_allow_tf32"]) == (True, True)
        assert settings["physics"] == "newton_mjwarp"
        of_gpus = ("cuda_graph", *WARP_SETTINGS, "torch_allocator_backend", "torch_allocator_conf", "gpu_numa_node")
        assert {name: settings[name] for name in of_gpus} == dict.fromkeys(of_gpus)  # None on a CPU, and there
        assert settings["cores_numa_nodes"] == nodes_of_cores(range(NUM_CPUS))
        assert (settings["versions.isaaclab"], settings["versions.ovphysx"]) == ("3.0.0", None)
        for name in ("torch", "newton", "warp-lang", "rl-games", "rsl-rl-lib", "skrl", "stable-baselines3", "python"):
            assert settings[f"versions.{name}"], name


def test_the_workload_is_written_and_the_ranks_agree(trained: Trained) -> None:
    workload = trained.record.workload
    assert workload is not None
    assert (workload["task"], workload["rl_library"]) == (trained.case.task, trained.case.rl_library)
    assert (workload["optimiser_steps"], workload["learning_epochs"]) == (
        trained.case.optimiser_steps,
        EPOCHS[trained.case.rl_library],
    )
    places = re.compile(rf"^/.*/|{re.escape(str(trained.run_dir))}|{trained.worker.asset_root}|0x[0-9a-f]{{6}}")
    assert [value for value in workload.values() if isinstance(value, str) and places.search(value)] == []
    for rank in range(trained.case.world_size):
        (written,) = (event for event in events(trained.run_dir, rank) if event["event"] == "workload")
        assert written["workload"] == workload


def test_every_rank_has_looked_at_its_own_work(trained: Trained) -> None:
    for rank in trained.record.ranks:
        pictures = {check.verdict for check in rank.validity if check.feature == "cameras"}
        assert pictures == ({"ok"} if has_camera(trained.case) else set())
        others = {check.name: check.verdict for check in rank.validity if check.feature != "cameras"}
        learning = {"learning": "not_checked"} if rank.rank == 0 else {}
        states = {"physics state after training": "ok", "physics state after steps": "ok"}
        assert others == {OVERFLOW_CHECK: "ok", **states, **learning}


def test_start_up_is_timed_by_phases(trained: Trained) -> None:
    for rank in trained.record.ranks:
        assert tuple(rank.phases_s) == PHASES
        assert all(duration_s > 0 for duration_s in rank.phases_s.values())
        start = events(trained.run_dir, rank.rank)[0]
        assert (start["event"], start["world_size"]) == ("start", trained.case.world_size)
        since_clock_zero = [duration_s for name, duration_s in rank.phases_s.items() if name != "imports_torch"]
        assert sum(since_clock_zero) < numbers(rank, "start_s")[0]
        assert (rank.kernels_compiled is None) == (rank.local_rank != 0)  # one counts for its node


def test_upstreams_bundle_is_written_by_rank_0(trained: Trained) -> None:
    if trained.case.rl_library == "torchrl":  # which its schema does not have
        assert not (trained.run_dir / "bundle").exists()
        return
    (path,) = (trained.run_dir / "bundle").glob("*.json")
    bundle: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    assert bundle["schema_version"] == "1.4"
    assert bundle["hardware"]["hostname"] == "not recorded"
    assert (bundle["run"]["framework"], bundle["run"]["num_envs"]) == (
        upstreams_name(trained.case.rl_library),
        trained.case.num_envs_global,
    )
    iterations = [event for event in events(trained.run_dir, 0) if event["event"] == "iteration"]
    iteration = [event["samples"]["iteration_time_s"] for event in iterations]  # a record has fewer digits
    assert bundle["runtime"]["iteration_time_s"]["mean"] == pytest.approx(sum(iteration) / 3, rel=1e-9)
    assert bundle["runtime"]["steps_per_iteration"] == trained.case.frames_per_iteration


def test_what_warp_compiled_is_whole(worker: Worker) -> None:
    assert list(modules(worker.cache_dir))
    assert damaged_modules(worker.cache_dir) == {}
