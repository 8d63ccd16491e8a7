"""Verdicts over run directories as ranks and torchrun leave them."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.catalog import Catalog, LearningReference
from suite.collect import collect
from suite.errors import Interrupted, StoreError
from suite.launch import LaunchResult
from suite.launch.result import EndedBy
from suite.schema import Case, Environment, RunRecord

GLOO_PEER = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:58085"
CUDA_OOM = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.80 GiB."

Events = list[dict[str, Any]]


class Run:
    """A run directory that a test fills, and collects."""

    def __init__(self, run_dir: Path, case: Case, environment: Environment) -> None:
        self.run_dir = run_dir
        self.case = case
        self.environment = environment

    def rank(self, rank: int, events: Events, *, torn: str = "") -> None:
        text = "".join(json.dumps(event) + "\n" for event in events)
        (self.run_dir / f"rank-{rank}.jsonl").write_text(text + torn)

    def torchrun_log(self, *exits: tuple[int, int], before: str = "") -> None:
        """Write the report of torch 2.11 for ``(rank, exit code)``; the last is what torchrun calls the root cause."""
        reports = [
            f"[{number}]:\n  time      : 2026-11-21_02:45:59\n  host      : localhost\n"
            f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: {6470 + rank})\n"
            "  error_file: <N/A>\n"
            for number, (rank, code) in enumerate(exits)
        ]
        self.log(
            "torchrun.log", f"{before}\ntasks.worker FAILED\n{'-' * 20}\nFailures:\n{''.join(reports)}{'=' * 20}\n"
        )

    def log(self, name: str, text: str) -> None:
        path = self.run_dir / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def collect(self, exit_code: int = 0, ended_by: EndedBy | None = None) -> RunRecord:
        result = LaunchResult(
            exit_code=exit_code, ended_by=ended_by, started_utc="2026-11-21T02:45:50+00:00", wall_time_s=9.5
        )
        return collect(self.run_dir, self.case, 1, result, self.environment, argv=("python", "-m", "x"))


@pytest.fixture
def run(tmp_path: Path, make_case: Callable[..., Case], environment: Environment) -> Run:
    return Run(tmp_path, make_case(), environment)


def head(rank: int) -> Events:
    return [
        {"event": "start", "rank": rank, "local_rank": rank, "world_size": 2, "pid": 6470 + rank, "time_unix_s": 1.0},
        {"event": "phase", "name": "imports", "duration_s": 2.5},
        {"event": "settings", "settings": {"seed": 42 + rank, "tf32": True, "versions.torch": "2.11.0"}},
    ]


def iterations(count: int, **columns: float | None) -> Events:
    samples = {"iteration_time_s": 0.5, **columns}
    return [{"event": "iteration", "iteration": number, "samples": samples} for number in range(count)]


def end(digest: str | None = "ab" * 32) -> Events:
    return [{"event": "end", "parameters_sha256": digest, "peak_memory_gb": 1.5}]


def error(message: str, *, kind: str = "RuntimeError", time_unix_s: float = 10.0, oom: bool = False) -> Events:
    fields = {"type": kind, "message": message, "traceback": "…", "out_of_memory": oom, "time_unix_s": time_unix_s}
    return [{"event": "error", **fields}]


def whole(rank: int) -> Events:
    return head(rank) + iterations(3) + end()


def test_completed_run_becomes_columns(run: Run) -> None:
    for rank in (1, 0):
        events = iterations(3, reward_mean=1.0)
        events[0]["samples"] = {"rsl_rl.total_fps": 9.0, "iteration_time_s": 0.7, "reward_mean": None}
        run.rank(rank, head(rank) + events + end())
    record = run.collect()
    assert (record.outcome, record.reason, record.exit_code, record.round) == ("completed", None, 0, 1)
    assert (record.started_utc, record.wall_time_s) == ("2026-11-21T02:45:50+00:00", 9.5)
    assert (record.case, record.environment, record.argv) == (run.case, run.environment, ("python", "-m", "x"))
    assert [(rank.rank, rank.local_rank, rank.num_iterations) for rank in record.ranks] == [(0, 0, 3), (1, 1, 3)]
    second = record.ranks[1]
    assert list(second.samples.items()) == [
        ("iteration_time_s", (0.7, 0.5, 0.5)),
        ("reward_mean", (None, 1.0, 1.0)),
        ("rsl_rl.total_fps", (9.0, None, None)),
    ]
    assert second.phases_s == {"imports": 2.5}
    assert second.settings == {"seed": 43, "tf32": True, "versions.torch": "2.11.0"}
    assert (second.parameters_sha256, second.peak_memory_gb, second.error) == ("ab" * 32, 1.5, None)


def test_torn_last_line_is_ignored(run: Run) -> None:
    run.rank(0, whole(0), torn='{"event": "iteration", "itera')
    run.rank(1, whole(1))
    assert run.collect().outcome == "completed"


def test_unended_last_line_counts_when_it_is_whole(run: Run) -> None:
    run.rank(0, whole(0))
    run.rank(1, head(1) + iterations(3), torn=json.dumps(end()[0]))
    assert run.collect().outcome == "completed"


@pytest.mark.parametrize("bad", ["{\x00\x00", "[1, 2]", '{"event": "nonsense"}', '{"event": "iteration"}', ""])
def test_corrupt_line_is_named_and_the_rest_kept(bad: str, run: Run) -> None:
    run.rank(0, whole(0))
    run.rank(1, whole(1))
    path = run.run_dir / "rank-1.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:4], bad, *lines[4:]]) + "\n")
    record = run.collect()
    assert record.outcome == "invalid"
    assert record.reason
    assert record.reason.startswith("rank-1.jsonl line 5 is not an event: ")
    assert record.ranks[1].num_iterations == 3


def test_bytes_that_are_no_text_are_corrupt(run: Run) -> None:
    run.rank(0, whole(0))
    run.rank(1, whole(1))
    path = run.run_dir / "rank-0.jsonl"
    path.write_bytes(b"\xff\xfe\n" + path.read_bytes())
    record = run.collect()
    assert record.outcome == "invalid"
    assert record.reason
    assert record.reason.startswith("rank-0.jsonl line 1 is not an event")


@pytest.mark.parametrize("ended_by", ["timeout", "hung"])
def test_ended_run_says_how_far_each_rank_got(ended_by: EndedBy, run: Run) -> None:
    run.rank(0, head(0) + iterations(2))
    run.rank(1, head(1))
    record = run.collect(exit_code=-9, ended_by=ended_by)
    assert record.outcome == ended_by
    assert record.reason
    assert "rank 0: 2 of 3 iterations; rank 1: in start-up, after imports" in record.reason


def test_hang_after_an_error_tells_the_error(run: Run) -> None:
    run.rank(0, head(0) + iterations(2))
    run.rank(1, head(1) + error("the cube fell"))
    reason = run.collect(exit_code=1, ended_by="hung").reason
    assert reason
    assert "rank 1: RuntimeError: the cube fell" in reason


def test_interrupted_run_has_no_record(run: Run) -> None:
    with pytest.raises(Interrupted, match="resume"):
        run.collect(exit_code=-15, ended_by="interrupted")


@pytest.mark.parametrize(
    "failed",
    [
        error("no room", oom=True, time_unix_s=11.0),
        error(CUDA_OOM, kind="OutOfMemoryError", time_unix_s=11.0),
        error("Failed to allocate 4096 bytes on device 'cuda:0'", time_unix_s=11.0),
    ],
)
def test_out_of_memory_is_its_own_outcome(failed: Events, run: Run) -> None:
    run.rank(0, head(0) + error("something else", time_unix_s=10.0))
    run.rank(1, head(1) + failed)
    record = run.collect(exit_code=1)
    assert record.outcome == "oom"
    assert record.reason == f"rank 1: {failed[0]['type']}: {failed[0]['message']}"


def test_first_error_in_time_is_the_reason(run: Run) -> None:
    run.rank(0, head(0) + error("second", time_unix_s=12.0))
    run.rank(1, head(1) + error("first", time_unix_s=11.0))
    record = run.collect(exit_code=1)
    assert (record.outcome, record.reason) == ("crashed", "rank 1: RuntimeError: first")
    assert [rank.error for rank in record.ranks] == ["RuntimeError: second", "RuntimeError: first"]


def test_own_error_goes_before_an_earlier_follow_up(run: Run) -> None:
    run.rank(0, head(0) + error(GLOO_PEER, time_unix_s=10.0))
    run.rank(1, head(1) + error("the cube fell", time_unix_s=11.0))
    run.torchrun_log((1, 1), (0, 1))
    assert run.collect(exit_code=1).reason == "rank 1: RuntimeError: the cube fell"


def test_follow_up_is_the_reason_when_there_is_no_other(run: Run) -> None:
    run.rank(0, head(0) + error(GLOO_PEER))
    run.rank(1, head(1))
    run.torchrun_log((1, -15), (0, 1))
    record = run.collect(exit_code=1)
    assert (record.outcome, record.reason) == ("crashed", f"rank 0: RuntimeError: {GLOO_PEER}")


def test_rank_killed_by_a_signal_goes_before_follow_ups(run: Run) -> None:
    run.rank(0, head(0) + error(GLOO_PEER))
    run.rank(1, head(1) + iterations(2))
    run.torchrun_log((0, -15), (1, -9))
    run.log("none_x/attempt_0/1/stderr.log", "")
    record = run.collect(exit_code=1)
    assert record.outcome == "crashed"  # the kernel leaves no evidence, so it is not called out of memory
    assert record.reason
    assert record.reason.startswith("rank 1: killed by signal 9 (often the kernel's out-of-memory killer)")


def test_rank_that_torchrun_had_to_kill_is_not_the_cause(run: Run) -> None:
    run.rank(0, head(0))
    run.rank(1, head(1))
    run.torchrun_log((0, -9), (1, -11), before="W Unable to shutdown process 6470 via 15, forcefully exiting via 9")
    reason = run.collect(exit_code=1).reason
    assert reason
    assert reason.startswith("rank 1: killed by signal 11 (Segmentation fault)")


def test_rank_without_events_speaks_through_its_stderr(run: Run) -> None:
    run.torchrun_log((0, -15), (1, 1))
    run.log("none_x/attempt_0/0/stderr.log", "of the other rank\n")
    run.log("none_x/attempt_0/1/stderr.log", "Traceback\n" * 9 + "ModuleNotFoundError: No module named 'isaaclab'\n\n")
    record = run.collect(exit_code=1)
    assert record.outcome == "crashed"
    assert record.reason
    assert record.reason.startswith("rank 1: ended with exit code 1; the last lines of its stderr:\n")
    assert record.reason.endswith("\nModuleNotFoundError: No module named 'isaaclab'")
    assert record.reason.count("\n") == 5


def test_out_of_memory_in_stderr_is_evidence(run: Run) -> None:
    run.torchrun_log((0, -6))
    run.log("none_x/attempt_0/0/stderr.log", f"torch.OutOfMemoryError: {CUDA_OOM}\n")
    assert run.collect(exit_code=1).outcome == "oom"


def test_rank_that_died_in_training_goes_before_one_that_had_finished(run: Run) -> None:
    run.rank(0, whole(0))
    run.rank(1, head(1) + iterations(2))
    run.torchrun_log((0, -6), (1, -11))
    reason = run.collect(exit_code=1).reason
    assert reason
    assert reason.startswith("rank 1: killed by signal 11")


def test_torchrun_that_fails_alone_speaks_through_its_log(run: Run) -> None:
    run.log("torchrun.log", "python: No module named torch\n")
    record = run.collect(exit_code=1)
    assert record.outcome == "crashed"
    assert record.reason == (
        "torchrun ended with exit code 1; the last lines of its log:\npython: No module named torch"
    )
    reason = run.collect(exit_code=-9).reason
    assert reason
    assert reason.startswith("torchrun was killed by signal 9 (Killed)")


def test_bad_exit_after_whole_files_is_a_crash(run: Run) -> None:
    run.rank(0, whole(0))
    run.rank(1, whole(1))
    assert run.collect(exit_code=1).outcome == "crashed"


def test_error_in_a_run_that_exits_well_is_a_crash(run: Run) -> None:
    run.rank(0, whole(0))
    run.rank(1, whole(1) + error("at the very end"))
    assert run.collect().outcome == "crashed"


@pytest.mark.parametrize(
    ("rank_1", "reason"),
    [
        (None, "rank 1 of 2 wrote no file"),
        ([], "rank 1 has no start event"),
        (whole(0), "the file of rank 1 was written by rank 0"),
        (
            head(1) + iterations(2) + end(),
            "the ranks finished unequal numbers of iterations (rank 0: 3, rank 1: 2)",
        ),
        (head(1) + iterations(3), "rank 1 has no end event"),
        (head(1) + iterations(2) + iterations(1) + end(), "rank 1 wrote iteration 0 where 2 was due"),
        (
            head(1) + iterations(3, iteration_time_s=float("nan")) + end(),
            "rank 1, iteration 0: iteration_time_s is nan",
        ),
        (head(1) + iterations(3, iteration_time_s=None) + end(), "rank 1, iteration 0: iteration_time_s is None"),
        (head(1) + iterations(3, iteration_time_s=0.0) + end(), "rank 1, iteration 0: iteration_time_s is 0.0"),
        (head(1) + iterations(3, reward_mean=float("inf")) + end(), "rank 1, iteration 0: reward_mean is inf"),
    ],
)
def test_output_that_fails_a_check_is_invalid(rank_1: Events | None, reason: str, run: Run) -> None:
    run.rank(0, whole(0))
    if rank_1 is not None:
        run.rank(1, rank_1)
    record = run.collect()
    assert (record.outcome, record.reason) == ("invalid", reason)
    json.dumps([rank.samples for rank in record.ranks], allow_nan=False)  # a record can always be stored


def test_too_few_iterations_on_every_rank_are_invalid(run: Run) -> None:
    for rank in (0, 1):
        run.rank(rank, head(rank) + iterations(2) + end())
    assert run.collect().reason == "rank 0 finished 2 of 3 iterations"


def test_surplus_rank_is_invalid(run: Run) -> None:
    for rank in (0, 1, 2):
        run.rank(rank, whole(rank))
    assert run.collect().reason == "rank 2 should not exist: the case has 2 ranks"


def test_ranks_that_trained_different_policies_are_invalid(run: Run) -> None:
    run.rank(0, whole(0))
    run.rank(1, head(1) + iterations(3) + end("cd" * 32))
    record = run.collect()
    assert record.outcome == "invalid"
    assert record.reason
    assert "rank 0: abababababab, rank 1: cdcdcdcdcdcd" in record.reason


def test_missing_rewards_and_digests_are_no_fault(run: Run) -> None:
    for rank in (0, 1):
        run.rank(rank, head(rank) + iterations(3, reward_mean=None) + end(None))
    record = run.collect()
    assert record.outcome == "completed"
    assert record.ranks[0].parameters_sha256 is None


def workload(**changes: object) -> Events:
    return [{"event": "workload", "workload": {"task": "Isaac-Cartpole-Direct", "decimation": 2, **changes}}]


def validity(verdict: str, fault: str | None = None) -> Events:
    check = {"name": "camera form", "feature": "cameras", "verdict": verdict, "found": "grey", "fault": fault}
    return [{"event": "validity", "checks": [check]}]


def test_the_workload_of_the_ranks_is_kept_with_its_hash(run: Run) -> None:
    for rank in (0, 1):
        run.rank(rank, head(rank) + workload() + iterations(3) + end())
    record = run.collect()
    assert record.outcome == "completed"
    assert record.workload == {"task": "Isaac-Cartpole-Direct", "decimation": 2}
    other = replace(record, workload={"decimation": 2, "task": "Isaac-Cartpole-Direct"})
    assert record.workload_sha256 == other.workload_sha256  # the order of the names says nothing
    assert record.workload_sha256 != replace(record, workload={**record.workload, "decimation": 4}).workload_sha256
    assert replace(record, workload=None).workload_sha256 is None


def test_ranks_with_other_workloads_are_invalid_and_say_where(run: Run) -> None:
    run.rank(0, head(0) + workload() + iterations(3) + end())
    run.rank(1, head(1) + workload(decimation=4, seed=1) + iterations(3) + end())
    record = run.collect()
    assert record.outcome == "invalid"
    assert record.reason == "rank 1 ran another workload than rank 0: decimation: 4 and 2; seed: 1 and not set"


def test_a_failed_check_of_a_rank_makes_the_round_invalid(run: Run) -> None:
    run.rank(0, whole(0) + validity("ok"))
    run.rank(1, whole(1) + validity("failure", "camera_constant"))
    record = run.collect()
    assert (record.outcome, record.reason) == ("invalid", "rank 1: camera form: grey (camera_constant)")
    assert [check.verdict for check in record.ranks[1].validity] == ["failure"]


def test_what_was_not_checked_is_said_and_no_fault(run: Run) -> None:
    for rank in (0, 1):
        run.rank(rank, whole(rank))
    record = run.collect()
    assert record.outcome == "completed"
    assert [check.verdict for check in record.ranks[0].validity] == ["not_checked"]  # learning, without a reference
    assert record.ranks[1].validity == ()


def test_learning_worse_than_the_reference_is_invalid(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = LearningReference(iterations=3, reward_at_least=5.0, source="a test")
    monkeypatch.setattr(Catalog, "learning_reference", lambda *_: reference)
    for rank in (0, 1):
        run.rank(rank, head(rank) + iterations(3, reward_mean=4.0) + end())
    record = run.collect()
    assert record.outcome == "invalid"
    assert record.reason
    assert record.reason.endswith("the reward is 4; at least 5 is known of iteration 3 (learns_worse)")


def test_vanished_run_directory_is_reported(run: Run) -> None:
    run.run_dir = run.run_dir / "gone"
    with pytest.raises(StoreError, match="gone"):
        run.collect()
