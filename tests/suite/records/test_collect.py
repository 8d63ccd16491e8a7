"""What ranks wrote becomes a record; what no run has is refused where it is read and before it is written."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import Interrupted, StoreError
from suite.records import store
from suite.records.validation import fault_of, stored_case
from suite.schema.observations import NodeReadings
from suite.schema.record import CaseResult, Gpu, RunRecord
from tests.fixtures.results.generated_results import make_case, make_record
from tests.fixtures.results.rank_events import Events, RankFiles, end, head, iterations, whole


def workload(**changes: object) -> Events:
    return [{"event": "workload", "workload": {"task": "Isaac-Cartpole-Direct", "decimation": 2, **changes}}]


def validity(verdict: str, fault: str | None = None) -> Events:
    check = {"name": "camera form", "feature": "cameras", "verdict": verdict, "found": "grey", "fault": fault}
    return [{"event": "validity", "checks": [check]}]


def test_completed_run_becomes_columns(rank_files: RankFiles) -> None:
    for rank in (1, 0):
        events = iterations(3, reward_mean=1.0)
        events[0]["samples"] = {"rsl_rl.total_fps": 9e4, "iteration_time_s": 0.7, "reward_mean": None}
        rank_files.rank(rank, head(rank) + workload() + events + end() + (validity("ok") if rank else []))
    record = rank_files.collect()
    assert (record.outcome, record.reason, record.exit_code, record.round) == ("completed", None, 0, 1)
    assert (record.started_utc, record.wall_time_s) == ("2026-11-21T02:45:50+00:00", 9.5)
    assert (record.case, record.environment, record.argv) == (
        rank_files.case,
        rank_files.environment,
        ("python", "-m", "x"),
    )
    assert [(rank.rank, rank.local_rank, rank.num_iterations) for rank in record.ranks] == [(0, 0, 3), (1, 1, 3)]
    second = record.ranks[1]
    assert list(second.samples.items()) == [
        ("iteration_time_s", (0.7, 0.5, 0.5)),
        ("reward_mean", (None, 1.0, 1.0)),
        ("rsl_rl.total_fps", (9e4, None, None)),
    ]
    assert second.phases_s == {"imports": 2.5}
    assert second.settings == {"seed": 43, "tf32": True, "versions.torch": "2.11.0"}
    assert (second.parameters_sha256, second.peak_memory_gb, second.error) == ("ab" * 32, 1.5, None)
    assert second.kernels_compiled == 7
    assert record.workload == {"task": "Isaac-Cartpole-Direct", "decimation": 2}
    verdicts = [[check.verdict for check in rank.validity] for rank in record.ranks]
    assert verdicts == [["not_checked"], ["ok"]]  # learning, without a reference


def test_a_last_line_without_its_end_counts_if_it_is_whole_and_is_ignored_if_it_is_torn(rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0), torn='{"event": "iteration", "itera')
    rank_files.rank(1, head(1) + iterations(3), torn=json.dumps(end()[0]))
    assert rank_files.collect().outcome == "completed"


@pytest.mark.parametrize(
    "bad",
    [
        b"{\x00\x00", b"[1, 2]", b'{"event": "nonsense"}', b'{"event": "iteration"}', b"", b"\xff\xfe",
        b'{"event": "phase", "name": "imports", "duration_s": NaN}',
        b'{"event": "settings", "settings": {"tf32": Infinity}}',
        b'{"event": "end", "peak_memory_gb": 1e300}',
    ],
)  # fmt: skip
def test_corrupt_line_is_named_and_the_rest_kept(bad: bytes, rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0))
    rank_files.rank(1, whole(1))
    path = rank_files.run_dir / "rank-1.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:4], bad, *lines[4:]]) + b"\n")
    record = rank_files.collect()
    assert record.outcome == "invalid"
    store.write_record(record, rank_files.run_dir / "record.json")
    assert (record.reason or "").startswith("rank-1.jsonl line 5 is not an event: ")
    assert record.ranks[1].num_iterations == 3


def test_interrupted_run_has_no_record(rank_files: RankFiles) -> None:
    with pytest.raises(Interrupted, match="resume"):
        rank_files.collect(exit_code=-15, ended_by="interrupted")


def test_vanished_run_directory_is_reported(rank_files: RankFiles) -> None:
    rank_files.run_dir = rank_files.run_dir / "gone"
    with pytest.raises(StoreError, match="gone"):
        rank_files.collect()


# ---- runs that ended well, but whose output is no measurement ----


@pytest.mark.parametrize(
    ("rank_1", "reason"),
    [
        (None, "rank 1 of 2 wrote no file"),
        ([], "rank 1 has no start event"),
        (whole(0), "the file of rank 1 was written by rank 0"),
        (head(1) + iterations(2) + end(), "rank 1 finished 2 of 3 iterations"),
        (head(1) + iterations(3), "rank 1 has no end event"),
        (head(1) + iterations(2) + iterations(1) + end(), "rank 1 wrote iteration 0 where 2 was due"),
        (head(1) + iterations(3, iteration_time_s=math.nan) + end(), "rank 1, iteration 0: iteration_time_s is nan"),
        (
            head(1) + iterations(3, iteration_time_s=0.0) + end(),
            "rank 1, iteration 0: iteration_time_s is 0.0, not a time above 0",
        ),
        (head(1) + iterations(3, reward_mean=math.inf) + end(), "rank 1, iteration 0: reward_mean is inf"),
        (head(1) + iterations(3, reward_mean=1e300) + end(), "rank 1, iteration 0: reward_mean is 1e+300"),
        (
            head(1) + iterations(3) + end("cd" * 32),
            (
                "the ranks ended with different parameters, so they did not train one policy"
                " (SHA-256 of rank 0: abababababab, rank 1: cdcdcdcdcdcd)"
            ),
        ),
        (
            head(1) + workload(decimation=4, seed=1) + iterations(3) + end(),
            "rank 1 ran another workload than rank 0: decimation: 4 and 2; seed: 1 and not set",
        ),
        (whole(1) + validity("failure", "camera_constant"), "rank 1: camera form: grey (camera_constant)"),
    ],
)
def test_output_that_fails_a_check_is_invalid(rank_1: Events | None, reason: str, rank_files: RankFiles) -> None:
    rank_files.rank(0, head(0) + workload() + iterations(3) + end())
    if rank_1 is not None:
        rank_files.rank(1, rank_1)
    record = rank_files.collect()
    assert (record.outcome, record.reason) == ("invalid", reason)
    store.write_record(record, rank_files.run_dir / "record.json")  # what is no measurement is stored too


def test_surplus_rank_is_invalid(rank_files: RankFiles) -> None:
    for rank in (0, 1, 2):
        rank_files.rank(rank, whole(rank))
    assert rank_files.collect().reason == "rank 2 should not be in a configuration of 2 processes"


PHYSX = "[Error] [omni.physx.plugin] PhysX error: "


@pytest.mark.parametrize(
    ("line", "name"),
    [
        (
            f"{PHYSX}The application needs to increase PxGpuDynamicsMemoryConfig::foundLostPairsCapacity to 16790",
            "PxGpuDynamicsMemoryConfig::foundLostPairsCapacity",
        ),
        (f"{PHYSX}Patch buffer overflow detected, please increase its size to at least 266360", "Patch buffer"),
        ("Collision stack overflow detected", "Collision stack"),
        (
            "Reached limit set by PxSceneDesc::maxNbContactDataBlocks - ran out of buffer space for narrow phase.",
            "PxSceneDesc::maxNbContactDataBlocks",
        ),
        ("Warning: Broad phase pair buffer overflowed 12 > 10.", "Broad phase pair buffer"),
        ("Number of Newton contacts (9) exceeded MJWarp limit (4). Increase nconmax.", "nconmax"),
    ],
)
@pytest.mark.parametrize("log", ["stdout.log", "stderr.log"])
def test_a_full_buffer_in_a_log_makes_the_round_invalid(line: str, name: str, log: str, rank_files: RankFiles) -> None:
    for rank in (0, 1):
        rank_files.rank(rank, whole(rank))
        rank_files.log(
            f"attempt_0/{rank}/{log}", "renderer.plugin: buffer overflow\n" if rank == 0 else f"{line}\n" * 3
        )
    record = rank_files.collect()
    assert record.outcome == "invalid"
    assert name in (record.reason or "")
    assert [check.fault for check in record.ranks[1].validity] == ["contacts_or_constraints_dropped"]


@pytest.mark.parametrize(
    ("ran_on", "machine", "outcome"),
    [
        ("NVIDIA H200", ("NVIDIA H200",), "completed"),
        ("NVIDIA H200", (), "completed"),  # what launched it sees no GPU
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", ("NVIDIA A100-SXM4-40GB",), "completed"),
        ("NVIDIA A100-SXM4-80GB", ("NVIDIA H200", "NVIDIA H200"), "invalid"),
        ("NVIDIA H100 NVL", ("NVIDIA H100",), "invalid"),
    ],
)
def test_a_gpu_that_the_machine_does_not_have_makes_the_round_invalid(
    ran_on: str | None, machine: tuple[str, ...], outcome: str, rank_files: RankFiles
) -> None:
    gpus = tuple(Gpu(index=i, name=name, memory_gb=None, compute_capability=None) for i, name in enumerate(machine))
    rank_files.environment = replace(rank_files.environment, gpus=gpus)
    rank_files.rank(0, whole(0))
    rank_files.rank(1, [*whole(1), {"event": "settings", "settings": {"gpu_name": ran_on}}])
    record = rank_files.collect()
    assert record.outcome == outcome
    if outcome == "invalid":
        assert "(gpu_not_of_this_machine)" in (record.reason or "")


SOUND = make_record(make_case(world_size=2))


def with_case(**changes: object) -> RunRecord:
    return replace(SOUND, case=replace(SOUND.case, **changes))  # type: ignore[arg-type]


def with_samples(**columns: tuple[float | None, ...]) -> RunRecord:
    ranks = [replace(rank, samples={**rank.samples, **columns}) for rank in SOUND.ranks]
    return replace(SOUND, ranks=(SOUND.ranks[0], ranks[1]))


def cut(record: RunRecord, length: int) -> RunRecord:
    ranks = [
        replace(rank, samples={name: column[:length] for name, column in rank.samples.items()}) for rank in record.ranks
    ]
    return replace(record, ranks=tuple(ranks))


UNSOUND = [
    (with_case(num_envs_global=0), "configuration.num_envs_global: Input should be greater than or equal to 1 (got 0)"),
    (with_case(minibatch_size=0), "its minibatch_size is 0, allowed is 1 or more"),
    (with_case(iterations=1), "configuration.iterations: Input should be greater than or equal to 2"),
    (with_case(case_id="../../elsewhere"), "configuration.configuration_id: String should match"),
    (
        replace(SOUND, started_utc="2026-13-21T10:00:00Z"),
        "its started_utc is '2026-13-21T10:00:00Z', allowed is a date",
    ),
    (replace(SOUND, started_utc=None), "its wall_time_s is 60 without a started_utc"),
    (replace(SOUND, ranks=SOUND.ranks[::-1]), "its ranks are [1, 0], needed are 0 to 1"),
    (with_samples(marked=(0.0,) * 11), "rank 1 has 12 samples of success_mean and 11 of marked"),
    (
        replace(SOUND, ranks=(SOUND.ranks[0], cut(SOUND, 11).ranks[1])),
        "rank 1 has times of 11 of 12 iterations",
    ),
    (with_samples(iteration_time_s=(0.5,) * 11 + (0.0,)), "rank 1, iteration 11: iteration_time_s is 0.0"),
    *(
        (with_samples(**{name: (None,) * 11 + (value,)}), f"rank 1, iteration 11: {name} is {value:g} in an iteration")
        for name, value in (
            ("rl_games.update_time_s", -172_800.0),
            ("rsl_rl.collection_time_s", 3.0),
            ("rl_games.total_fps", -10.0),
        )
    ),
    (
        replace(SOUND, readings=(NodeReadings(node=2, columns={"time_s": (1.0, 2.0), "rank0.core": (3,)}),)),
        "node 2 has 2 readings of time_s and 1 of rank0.core",
    ),
    (with_samples(reward_mean=(1e300,) * 12), "ranks.1.samples.reward_mean.0: Input should be less than or equal to 1"),
]


def write_unchecked(record: RunRecord, folder: Path) -> Path:
    path = folder / "cases" / "case.json"
    path.parent.mkdir(parents=True)
    stored = stored_case(CaseResult(case=record.case, rounds=(record,)))
    path.write_text(json.dumps({"labscale": stored}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("record", "fault"), UNSOUND, ids=lambda value: value if isinstance(value, str) else "")
def test_what_no_round_has_is_named_and_not_read(record: RunRecord, fault: str, tmp_path: Path) -> None:
    assert fault_of(SOUND) is None
    assert fault in (fault_of(record) or "sound")
    path = write_unchecked(record, tmp_path)
    with pytest.raises(StoreError, match=f"^{path} is not valid: "):
        store.read_case(path)


def test_in_turns_a_time_of_a_library_includes_the_others() -> None:
    waited = with_samples(**{"rsl_rl.collection_time_s": (59.0,) * 12})
    assert fault_of(waited) is not None
    in_turns = with_samples(**{"rsl_rl.collection_time_s": (59.0,) * 12, "turn": (0.0,) * 12})
    assert fault_of(in_turns) is None
    assert fault_of(replace(in_turns, wall_time_s=58.0)) is not None


def test_a_skipped_round_may_have_a_batch_that_is_too_small_to_learn_from(tmp_path: Path) -> None:
    """Such a case is refused, and its refusal has to be stored."""
    skipped = replace(with_case(minibatch_size=0, optimiser_steps=0), outcome="skipped", ranks=())
    assert fault_of(skipped) is None
    assert store.read_case(write_unchecked(skipped, tmp_path)).rounds[0].outcome == "skipped"
