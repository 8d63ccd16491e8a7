"""The store: what goes in comes out bit for bit, and nothing that is broken goes in or out."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any

import pytest

from suite import reduce, store
from suite.errors import StoreError
from suite.replay import session
from suite.schema import Case, CaseResult, Environment, Gpu, Outcome, RankRecord, RunRecord

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = Environment(
    host_label="desk",
    cpu_model="Example CPU",
    num_cpus=2,
    memory_gb=25.0,
    os="Linux",
    kernel="6.1",
    gpus=(Gpu(index=0, name="Example GPU", memory_gb=150.0, compute_capability="9.0"),),
    driver_version="580.1",
    cuda_driver_version="13.0",
    suite_version="0.1.0",
    git_commit="0" * 40,
    git_dirty=False,
    asset_sha256="ab" * 32,
)
CaseMaker = Callable[..., Case]
RecordMaker = Callable[..., RunRecord]


def make_rank(rank: int, times_s: tuple[float | None, ...]) -> RankRecord:
    return RankRecord(
        rank=rank,
        local_rank=rank,
        phases_s={"imports": 3.25, "environment_creation": 10.0},
        settings={"seed": 42 + rank, "tf32": False, "lr": 0.001, "backend": None, "versions.torch": "2.11.0"},
        samples={"iteration_time_s": times_s, "reward_mean": (None,) * len(times_s)},
        parameters_sha256="cd" * 32,
        peak_memory_gb=1.5,
    )


@pytest.fixture
def make_record(make_case: CaseMaker) -> RecordMaker:
    """A completed two-rank round of three iterations; rank 1 is the slower one, except in the last iteration."""

    def make(round_index: int = 0, outcome: Outcome = "completed", **changes: Any) -> RunRecord:
        slow = (2.0 + round_index, 0.1 + 0.2 + round_index, 0.2)
        record = RunRecord(
            case=make_case(),
            round=round_index,
            outcome=outcome,
            reason=None if outcome == "completed" else f"RuntimeError: rank 1 {outcome}",
            exit_code=0 if outcome == "completed" else 1,
            started_utc="2026-11-21T10:00:00Z",
            wall_time_s=61.5,
            environment=ENVIRONMENT,
            argv=("torchrun", "-m", "tasks.worker"),
            ranks=(make_rank(0, (1.0, 0.1, math.pi)), make_rank(1, slow)),
        )
        return replace(record, **changes)

    return make


def written(result: CaseResult, path: Path) -> dict[str, Any]:
    store.write_case(result, path)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


# ---- records ----


def test_a_record_comes_back_with_samples_of_nine_digits(make_record: RecordMaker, tmp_path: Path) -> None:
    record = make_record(outcome="crashed")
    store.write_record(record, tmp_path / "r0" / "record.json")
    back = store.read_record(tmp_path / "r0" / "record.json")
    assert back.ranks[0].samples["iteration_time_s"] == (1.0, 0.1, 3.14159265)
    assert back.ranks[1].samples["iteration_time_s"] == (2.0, 0.3, 0.2)
    assert replace(back, ranks=record.ranks) == record
    assert replace(back.ranks[0], samples=record.ranks[0].samples) == record.ranks[0]
    store.write_record(back, tmp_path / "again.json")
    assert store.read_record(tmp_path / "again.json") == back
    assert [path.name for path in (tmp_path / "r0").iterdir()] == ["record.json"]


def test_any_mapping_is_stored_as_an_object(make_record: RecordMaker, tmp_path: Path) -> None:
    record = make_record()
    rank = replace(record.ranks[0], phases_s=MappingProxyType({"imports": 1.0}))
    store.write_record(replace(record, ranks=(rank,)), tmp_path / "record.json")
    assert store.read_record(tmp_path / "record.json").ranks[0].phases_s == {"imports": 1.0}


def test_a_column_of_samples_is_one_line(make_record: RecordMaker, tmp_path: Path) -> None:
    store.write_record(make_record(), tmp_path / "record.json")
    lines = (tmp_path / "record.json").read_text(encoding="utf-8").splitlines()
    assert '"iteration_time_s": [1.0,0.1,3.14159265],' in [line.strip() for line in lines]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wall_time_s": math.nan}, r"wall_time_s: Input should be a finite number \(got nan\)"),
        ({"wall_time_s": "61.5"}, r"wall_time_s: Input should be a valid number \(got '61.5'\)"),
        ({"outcome": "fine"}, "outcome: Input should be 'completed', "),
        ({"argv": (b"torchrun",)}, "cannot be written as JSON: Object of type bytes"),
        ({"schema_version": 99}, "schema_version is 99; this labscale knows 1, 2"),
        (
            {"ranks": (make_rank(0, (1.0, math.inf)),)},
            r"ranks.0.samples.iteration_time_s.1: Input should be a finite number \(got inf\)",
        ),
    ],
)
def test_an_invalid_record_is_not_written(
    make_record: RecordMaker, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        store.write_record(make_record(**change), tmp_path / "record.json")
    assert list(tmp_path.iterdir()) == []


def set_nan(document: dict[str, Any]) -> None:
    document["ranks"][1]["samples"]["reward_mean"][2] = math.nan


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda document: document.update(colour="red"), "colour: Unexpected keyword argument"),
        (lambda document: document["ranks"][1].update(speed=3), "ranks.1.speed: Unexpected keyword argument"),
        (
            lambda document: document["case"].update(seed="42"),
            r"case.seed: Input should be a valid integer \(got '42'\)",
        ),
        (lambda document: document["case"].pop("seed"), "case.seed: Field required"),
        (lambda document: document.update(round=True), "round: Input should be a valid integer"),
        (set_nan, r"ranks.1.samples.reward_mean.2: Input should be a finite number"),
        (lambda document: document.update(schema_version=99), "schema_version is 99; this labscale knows 1, 2"),
        (lambda document: document.pop("schema_version"), "schema_version is None"),
    ],
)
def test_an_edited_record_is_refused_with_the_place_named(
    make_record: RecordMaker, tmp_path: Path, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    path = tmp_path / "record.json"
    store.write_record(make_record(), path)
    document = json.loads(path.read_text(encoding="utf-8"))
    edit(document)
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(StoreError, match=message) as caught:
        store.read_record(path)
    assert str(path) in str(caught.value)
    assert "Move the file away and run again: only this round is repeated." in str(caught.value)


@pytest.mark.parametrize("content", [b"", b'{"case": {"case_', b"[]", b"\xff\xfe"])
def test_a_corrupt_record_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="Move the file away and run again: only this round is repeated") as caught:
        store.read_record(path)
    assert str(path) in str(caught.value)


def test_a_missing_record_and_an_unwritable_folder_are_store_errors(make_record: RecordMaker, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be read: No such file or directory"):
        store.read_record(tmp_path / "record.json")
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot be written: (Not a directory|File exists)"):
        store.write_record(make_record(), tmp_path / "file" / "record.json")


def test_nothing_is_overwritten(make_record: RecordMaker, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("kept", encoding="utf-8")
    with pytest.raises(StoreError, match="never overwritten"):
        store.write_record(make_record(), path)
    with pytest.raises(StoreError, match="never overwritten"):
        store.write_case(CaseResult(case=make_record().case, rounds=(make_record(),)), path)
    assert path.read_text(encoding="utf-8") == "kept"


# ---- being killed ----

STOP_BEFORE_THE_NAME = """
import os, pathlib, sys, time
from suite import store
record = store.read_record(pathlib.Path(sys.argv[1]))
def stop(descriptor):
    print("writing", flush=True)
    time.sleep(600)
os.fsync = stop
store.write_record(record, pathlib.Path(sys.argv[2]) / "record.json")
"""


def test_a_writer_killed_before_the_rename_leaves_no_record(make_record: RecordMaker, tmp_path: Path) -> None:
    source, folder = tmp_path / "source.json", tmp_path / "out"
    store.write_record(make_record(), source)
    command = [sys.executable, "-c", STOP_BEFORE_THE_NAME, str(source), str(folder)]
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"writing\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert [path.suffix for path in folder.iterdir()] == [".partial"]
    store.write_record(make_record(), folder / "record.json")
    assert store.read_record(folder / "record.json") == store.read_record(source)


# ---- cases ----


@pytest.fixture
def mixed(make_record: RecordMaker) -> CaseResult:
    """Two completed rounds and between them a crashed one, whose ranks wrote times that must not count."""
    rounds = (make_record(0), make_record(1, "crashed"), make_record(2))
    return CaseResult(case=rounds[0].case, rounds=rounds)


def test_completed_rounds_are_the_samples_and_failed_ones_are_rows(
    mixed: CaseResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What a user may have set must not reach the session; this would stop any pytest.
    monkeypatch.setenv("PYTEST_ADDOPTS", "--no-such-option")
    document = written(mixed, tmp_path / "cases" / "a.json")
    samples_s = [median([0.3, 3.14159265]), median([2.3, 3.14159265])]

    (benchmark,) = document["benchmarks"]
    assert benchmark["stats"]["data"] == samples_s
    assert benchmark["fullname"] == f"suite/replay/bench_case.py::test_case[{mixed.case.case_id}]"
    assert benchmark["group"] == "cartpole-strong"
    assert "SampleClock" in benchmark["options"]["timer"]
    extra = benchmark["extra_info"]
    assert extra["rounds_are"] == "independent processes"
    assert extra["rounds"] == [0, 2]
    assert extra["frames_per_iteration"] == 64 * 16
    assert extra["total_fps"] == [64 * 16 / sample_s for sample_s in samples_s]
    assert extra["statistic"] == reduce.ROUND_STATISTIC
    assert extra["case"]["case_id"] == mixed.case.case_id

    machine = document["machine_info"]
    assert machine["node"] == "redacted"
    assert "flags" not in machine["cpu"]
    assert machine["environment"]["gpus"][0]["name"] == "Example GPU"
    assert machine["versions.torch"] == "2.11.0"
    assert document["commit_info"] == {"project": "labscale", "id": "0" * 40, "dirty": False}

    assert document["labscale"]["schema_version"] == 2
    assert document["labscale"]["suite_version"] == "0.1.0"
    assert document["labscale"]["no_benchmarks_because"] is None
    assert (tmp_path / "cases" / "a.json").read_text(encoding="utf-8").count('"iteration_time_s"') == 6

    (back,) = store.load_results(tmp_path)
    assert [(record.outcome, record.reason) for record in back.rounds] == [
        ("completed", None),
        ("crashed", "RuntimeError: rank 1 crashed"),
        ("completed", None),
    ]
    assert [reduce.round_time_s(record) for record in back.completed] == samples_s
    assert back.rounds[1].ranks[1].samples["iteration_time_s"] == (3.0, 1.3, 0.2)
    assert back.case == mixed.case


def test_a_case_without_a_completed_round_is_stored_too(make_record: RecordMaker, tmp_path: Path) -> None:
    rounds = (make_record(0, "oom"), make_record(1, "skipped", started_utc=None, ranks=()))
    result = CaseResult(case=rounds[0].case, rounds=rounds)
    document = written(result, tmp_path / "a.json")
    assert document["benchmarks"] == []
    assert document["labscale"]["no_benchmarks_because"] == "no round completed; case_result.rounds says why"
    assert document["machine_info"]["environment"]["driver_version"] == "580.1"
    assert [record.outcome for record in store.read_case(tmp_path / "a.json").rounds] == ["oom", "skipped"]


def test_a_case_is_stored_from_any_folder_whatever_pytest_is_configured_to_do(
    make_record: RecordMaker, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    shutil.copytree(ROOT / "suite", checkout / "suite")
    for folder in (tmp_path, checkout):
        (folder / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\n", encoding="utf-8")
    store.write_record(make_record(), tmp_path / "record.json")
    program = (
        "import pathlib; from suite import store; from suite.schema import CaseResult\n"
        "record = store.read_record(pathlib.Path('record.json'))\n"
        "store.write_case(CaseResult(case=record.case, rounds=(record,)), pathlib.Path('a.json'))\n"
    )
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    assert store.read_case(tmp_path / "a.json").rounds == (store.read_record(tmp_path / "record.json"),)


def test_a_failing_session_is_reported_with_its_output(
    mixed: CaseResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "_FOLDER", tmp_path)  # there is no bench_case.py and no conftest.py
    with pytest.raises(StoreError, match=r"exit code 4:\n(.|\n)*unrecognized arguments: --labscale-draft") as caught:
        store.write_case(mixed, tmp_path / "a.json")
    assert "Nothing was stored and the rounds are kept" in str(caught.value)
    assert not (tmp_path / "a.json").exists()


@pytest.mark.parametrize(
    ("benchmarks", "message"),
    [
        ([], r"stored \[\] where"),
        ([{"fullname": "suite/replay/bench_case.py::test_case[a]", "stats": {"data": [0.3]}}], r"stored \[0.3\] for"),
    ],
)
def test_a_session_that_stores_other_numbers_is_refused(benchmarks: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(StoreError, match=message):
        session._check({"benchmarks": benchmarks}, {"case_id": "a", "samples_s": [0.1 + 0.2]})


def test_an_all_reduce_alone_has_no_frames(make_record: RecordMaker, make_case: CaseMaker, tmp_path: Path) -> None:
    record = make_record(case=make_case(workload="all_reduce"))
    document = written(CaseResult(case=record.case, rounds=(record,)), tmp_path / "a.json")
    extra = document["benchmarks"][0]["extra_info"]
    assert (extra["frames_per_iteration"], extra["total_fps"]) == (None, None)
    assert extra["rounds"] == [0]


def test_rounds_that_do_not_belong_together_are_refused(
    make_record: RecordMaker, make_case: CaseMaker, tmp_path: Path
) -> None:
    record = make_record()
    for rounds, message in (
        ((), "has no rounds"),
        ((record, record), r"are \[0, 0\]; each may be there once"),
        ((make_record(case=make_case(seed=1)),), "round 0 is of another case"),
        ((make_record(schema_version=99),), "schema_version is 99"),
        ((replace(record, ranks=record.ranks[:1]),), "completed round without a number: round 0 has samples of 1 of 2"),
    ):
        with pytest.raises(StoreError, match=message):
            store.write_case(CaseResult(case=record.case, rounds=rounds), tmp_path / "a.json")
    assert list(tmp_path.iterdir()) == []


# ---- the golden file and folders of results ----
