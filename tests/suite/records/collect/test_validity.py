"""Runs that ended well, but whose output is no measurement."""

import json
from dataclasses import replace

import pytest

from suite.matrix.catalog import Catalog, LearningReference
from suite.schema.record import Gpu
from tests.fixtures.results.rank_events import Events, RankFiles, end, head, iterations, whole


@pytest.mark.parametrize(
    ("rank_1", "reason"),
    [
        (None, "rank 1 of 2 wrote no file"),
        ([], "rank 1 has no start event"),
        (whole(0), "the file of rank 1 was written by rank 0"),
        (head(1) + iterations(2) + end(), "rank 1 finished 2 of 3 iterations"),
        (head(1) + iterations(3), "rank 1 has no end event"),
        (head(1) + iterations(2) + iterations(1) + end(), "rank 1 wrote iteration 0 where 2 was due"),
        (
            head(1) + iterations(3, iteration_time_s=float("nan")) + end(),
            "rank 1, iteration 0: iteration_time_s is nan",
        ),
        (
            head(1) + iterations(3, iteration_time_s=0.0) + end(),
            "rank 1, iteration 0: iteration_time_s is 0.0, not a time above 0",
        ),
        (head(1) + iterations(3, reward_mean=float("inf")) + end(), "rank 1, iteration 0: reward_mean is inf"),
    ],
)
def test_output_that_fails_a_check_is_invalid(rank_1: Events | None, reason: str, rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0))
    if rank_1 is not None:
        rank_files.rank(1, rank_1)
    record = rank_files.collect()
    assert (record.outcome, record.reason) == ("invalid", reason)
    json.dumps([rank.samples for rank in record.ranks], allow_nan=False)  # a record can always be stored


def test_surplus_rank_is_invalid(rank_files: RankFiles) -> None:
    for rank in (0, 1, 2):
        rank_files.rank(rank, whole(rank))
    assert rank_files.collect().reason == "rank 2 should not exist: the case has 2 ranks"


def test_ranks_that_trained_different_policies_are_invalid(rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0))
    rank_files.rank(1, head(1) + iterations(3) + end("cd" * 32))
    record = rank_files.collect()
    assert record.outcome == "invalid"
    assert record.reason
    assert "rank 0: abababababab, rank 1: cdcdcdcdcdcd" in record.reason


def workload(**changes: object) -> Events:
    return [{"event": "workload", "workload": {"task": "Isaac-Cartpole-Direct", "decimation": 2, **changes}}]


def validity(verdict: str, fault: str | None = None) -> Events:
    check = {"name": "camera form", "feature": "cameras", "verdict": verdict, "found": "grey", "fault": fault}
    return [{"event": "validity", "checks": [check]}]


def test_the_workload_of_the_ranks_is_kept(rank_files: RankFiles) -> None:
    for rank in (0, 1):
        rank_files.rank(rank, head(rank) + workload() + iterations(3) + end())
    record = rank_files.collect()
    assert record.outcome == "completed"
    assert record.workload == {"task": "Isaac-Cartpole-Direct", "decimation": 2}


def test_ranks_with_other_workloads_are_invalid_and_say_where(rank_files: RankFiles) -> None:
    rank_files.rank(0, head(0) + workload() + iterations(3) + end())
    rank_files.rank(1, head(1) + workload(decimation=4, seed=1) + iterations(3) + end())
    record = rank_files.collect()
    assert record.outcome == "invalid"
    assert record.reason == "rank 1 ran another workload than rank 0: decimation: 4 and 2; seed: 1 and not set"


def test_a_failed_check_of_a_rank_makes_the_round_invalid(rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0) + validity("ok"))
    rank_files.rank(1, whole(1) + validity("failure", "camera_constant"))
    record = rank_files.collect()
    assert (record.outcome, record.reason) == ("invalid", "rank 1: camera form: grey (camera_constant)")
    assert [check.verdict for check in record.ranks[1].validity] == ["failure"]


def test_what_was_not_checked_is_said_and_no_fault(rank_files: RankFiles) -> None:
    for rank in (0, 1):
        rank_files.rank(rank, whole(rank))
    record = rank_files.collect()
    assert record.outcome == "completed"
    assert [check.verdict for check in record.ranks[0].validity] == ["not_checked"]  # learning, without a reference
    assert record.ranks[1].validity == ()


@pytest.mark.parametrize(
    ("of_ranks", "said"),
    [
        ((4.0, 4.0), "4"),
        ((6.0, 3.0), "4.5"),  # rank 0 alone reached it
        ((4.0, None), "4"),  # rsl_rl keeps rewards on rank 0
        ((4.5, 6.0), None),
    ],
)
def test_learning_worse_than_the_reference_is_invalid(
    of_ranks: tuple[float | None, ...], said: str | None, rank_files: RankFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = rank_files.case
    reference = LearningReference(
        stack=case.stack,
        frames_per_iteration=case.frames_per_iteration,
        optimiser_steps=case.optimiser_steps,
        iterations=3,
        reward_at_least=5.0,
        source="a test",
    )
    monkeypatch.setattr(Catalog, "learning_references", lambda *_: (reference,))
    for rank, reward in enumerate(of_ranks):
        rank_files.rank(rank, head(rank) + iterations(3, reward_mean=reward) + end())
    record = rank_files.collect()
    assert record.outcome == ("completed" if said is None else "invalid")
    if said is not None:
        assert f"reward is {said};" in (record.reason or "")
        assert "(learns_worse)" in (record.reason or "")


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
