"""What ranks wrote becomes a record."""

import json

import pytest

from suite.errors import Interrupted, StoreError
from tests.fixtures.results.rank_events import RankFiles, end, head, iterations, whole


def test_completed_run_becomes_columns(rank_files: RankFiles) -> None:
    for rank in (1, 0):
        events = iterations(3, reward_mean=1.0)
        events[0]["samples"] = {"rsl_rl.total_fps": 9e4, "iteration_time_s": 0.7, "reward_mean": None}
        rank_files.rank(rank, head(rank) + events + end())
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


def test_torn_last_line_is_ignored(rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0), torn='{"event": "iteration", "itera')
    rank_files.rank(1, whole(1))
    assert rank_files.collect().outcome == "completed"


def test_unended_last_line_counts_when_it_is_whole(rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0))
    rank_files.rank(1, head(1) + iterations(3), torn=json.dumps(end()[0]))
    assert rank_files.collect().outcome == "completed"


@pytest.mark.parametrize(
    "bad", [b"{\x00\x00", b"[1, 2]", b'{"event": "nonsense"}', b'{"event": "iteration"}', b"", b"\xff\xfe"]
)
def test_corrupt_line_is_named_and_the_rest_kept(bad: bytes, rank_files: RankFiles) -> None:
    rank_files.rank(0, whole(0))
    rank_files.rank(1, whole(1))
    path = rank_files.run_dir / "rank-1.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:4], bad, *lines[4:]]) + b"\n")
    record = rank_files.collect()
    assert record.outcome == "invalid"
    assert record.reason
    assert record.reason.startswith("rank-1.jsonl line 5 is not an event: ")
    assert record.ranks[1].num_iterations == 3


def test_hung_run_says_how_far_each_rank_got(rank_files: RankFiles) -> None:
    rank_files.rank(0, head(0) + iterations(2))
    rank_files.rank(1, head(1))
    record = rank_files.collect(exit_code=-9, ended_by="hung")
    assert record.outcome == "hung"
    assert record.reason
    assert "rank 0: 2 of 3 iterations; rank 1: in start-up, after imports" in record.reason


def test_interrupted_run_has_no_record(rank_files: RankFiles) -> None:
    with pytest.raises(Interrupted, match="resume"):
        rank_files.collect(exit_code=-15, ended_by="interrupted")


def test_vanished_run_directory_is_reported(rank_files: RankFiles) -> None:
    rank_files.run_dir = rank_files.run_dir / "gone"
    with pytest.raises(StoreError, match="gone"):
        rank_files.collect()
