"""The store: records come out bit for bit, completed rounds are samples, and nothing broken goes in or out."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any
from unittest import mock

import pytest

from suite.errors import StoreError
from suite.files.paths import ROOT
from suite.records import store
from suite.replay import bench_case
from suite.schema.record import CaseResult, CheckResult
from suite.statistics import reduce
from tests.conftest import CaseMaker
from tests.fixtures.results.stored_rounds import ENVIRONMENT, RecordMaker, make_rank, stored_round, written

GOLDEN = ROOT / "tests" / "golden" / "store_case.json"


@pytest.fixture
def make_record(make_case: CaseMaker) -> RecordMaker:
    return partial(stored_round, case=make_case())


# ---- records ----


def test_a_record_comes_back_with_samples_of_nine_digits(make_record: RecordMaker, tmp_path: Path) -> None:
    ranks = (make_rank(0, (1.0, 0.1, math.pi)), make_rank(1, (2.0, 0.1 + 0.2, 0.2)))
    record = make_record(outcome="crashed", ranks=ranks)
    store.write_record(record, tmp_path / "r0" / "record.json")
    back = store.read_record(tmp_path / "r0" / "record.json")
    assert back.ranks[0].samples["iteration_time_s"] == (1.0, 0.1, 3.14159265)
    assert back.ranks[1].samples["iteration_time_s"] == (2.0, 0.3, 0.2)
    assert replace(back, ranks=record.ranks) == record
    assert replace(back.ranks[0], samples=record.ranks[0].samples) == record.ranks[0]
    store.write_record(back, tmp_path / "again.json")
    assert store.read_record(tmp_path / "again.json") == back
    assert [path.name for path in (tmp_path / "r0").iterdir()] == ["record.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wall_time_s": math.nan}, "wall_time_s"),
        ({"argv": (b"torchrun",)}, "argv.0: Input should be a valid string"),
        ({"ranks": ()}, "Nothing was written"),
        ({"ranks": (make_rank(0, (1.0, math.inf)),)}, "ranks.0.samples.iteration_time_s.1"),
    ],
)
def test_an_invalid_record_is_not_written(
    make_record: RecordMaker, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with pytest.raises(StoreError, match=message):
        store.write_record(make_record(**change), tmp_path / "record.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda document: document.update(colour="red"), "colour"),
        (lambda document: document["configuration"].pop("seed"), "configuration.seed"),
        (
            lambda document: document["ranks"][1]["samples"].update(reward_mean=[None, None, math.nan]),
            "ranks.1.samples.reward_mean.2",
        ),
        (lambda document: document.update(schema_version=99), "schema_version is 99"),
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


def test_what_cannot_be_read_or_written_is_a_store_error(make_record: RecordMaker, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    with pytest.raises(StoreError, match="cannot be read: No such file or directory"):
        store.read_record(path)
    for content in (b"", b'{"case": {"case_', b"[]", b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(StoreError, match=str(path)):
            store.read_record(path)
    with pytest.raises(StoreError, match=r"cannot be written: (Not a directory|File exists)"):
        store.write_record(make_record(), path / "record.json")


def test_nothing_is_overwritten(make_record: RecordMaker, tmp_path: Path) -> None:
    path = tmp_path / "kept.json"
    path.write_text("kept", encoding="utf-8")
    with pytest.raises(StoreError, match="never overwritten"):
        store.write_record(make_record(), path)
    with pytest.raises(StoreError, match="never overwritten"):
        store.write_cases({path: CaseResult(case=make_record().case, rounds=(make_record(),))})
    assert path.read_text(encoding="utf-8") == "kept"


# ---- being killed ----

STOP_BEFORE_THE_NAME = """
import os, pathlib, sys, time
from suite.records import store
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


def test_completed_rounds_are_the_samples_and_failed_ones_are_rows(mixed: CaseResult, tmp_path: Path) -> None:
    document = written(mixed, tmp_path / "cases" / "a.json")
    samples_s = [fmean([0.3, 3.14159265]), fmean([2.3, 3.14159265])]
    (benchmark,) = document["benchmarks"]
    assert (benchmark["stats"]["data"], benchmark["extra_info"]["runs"]) == (samples_s, [0, 2])
    machine = document["machine_info"]
    assert (machine["node"], "flags" in machine["cpu"], machine["versions.torch"]) == ("redacted", False, "2.11.0")
    assert document["commit_info"] == {"project": "labscale", "id": "0" * 40, "dirty": False}
    (back,) = store.load_results(tmp_path)
    assert back == mixed
    assert [reduce.round_time_s(record) for record in back.completed] == samples_s


def test_a_case_without_a_completed_round_is_stored_too(make_record: RecordMaker, tmp_path: Path) -> None:
    rounds = (make_record(0, "oom"), make_record(1, "skipped", started_utc=None, wall_time_s=None, ranks=()))
    result = CaseResult(case=rounds[0].case, rounds=rounds)
    document = written(result, tmp_path / "a.json")
    assert document["benchmarks"] == []
    assert document["labscale"]["no_benchmarks_because"] == "no run completed; runs says why"
    assert document["labscale"]["machines"][0]["driver_version"] == "580.1"
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
        "import pathlib; from suite.records import store; from suite.schema.record import CaseResult\n"
        "record = store.read_record(pathlib.Path('record.json'))\n"
        "store.write_cases({pathlib.Path('a.json'): CaseResult(case=record.case, rounds=(record,))})\n"
    )
    environment = os.environ | {"PYTHONPATH": str(checkout), "PYTEST_ADDOPTS": "--no-such-option"}
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True)
    assert store.read_case(tmp_path / "a.json").rounds == (store.read_record(tmp_path / "record.json"),)


@pytest.mark.parametrize(
    ("fault", "raised", "message"),
    [
        (ValueError("a torn sample"), StoreError, r"exit code 1:\n(.|\n)*a torn sample(.|\n)*Nothing was stored"),
        (KeyboardInterrupt(), KeyboardInterrupt, "^$"),
    ],
)
def test_a_session_that_fails_or_is_interrupted_stores_nothing(
    mixed: CaseResult, tmp_path: Path, fault: BaseException, raised: type[BaseException], message: str
) -> None:
    replaced = mock.patch.object(bench_case, "extra_info", side_effect=fault)
    with replaced, pytest.raises(raised, match=message):
        store.write_cases({tmp_path / "a.json": mixed})
    assert not (tmp_path / "a.json").exists()


def test_rounds_that_do_not_belong_together_are_refused(
    make_record: RecordMaker, make_case: CaseMaker, tmp_path: Path
) -> None:
    record = make_record()
    for rounds, message in (
        ((), "has no runs"),
        ((record, record), r"are \[0, 0\]; each may be there once"),
        ((make_record(case=make_case(seed=1)),), "run 0 is of another configuration"),
        ((replace(record, ranks=record.ranks[:1]),), r"is not valid: of run 0, its ranks are \[0\], needed are 0 to 1"),
    ):
        with pytest.raises(StoreError, match=message):
            store.write_cases({tmp_path / "a.json": CaseResult(case=record.case, rounds=rounds)})
    assert list(tmp_path.iterdir()) == []


def test_the_client_of_pytest_benchmark_reads_stored_cases_in_the_checkout_too() -> None:
    """It reads ``tests/conftest.py`` there, and no folder of ours is on its path."""
    client = Path(sys.executable).with_name("pytest-benchmark")
    done = subprocess.run([client, "compare", str(GOLDEN)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cartpole-strong/rsl_rl-kitless-cpu-n64-1x2" in done.stdout


# ---- reading stored cases: the golden file, edited and misplaced files ----


CHECK = CheckResult(name="libc", feature="host", verdict="ok", found="glibc 2.39", fault=None)


def test_the_golden_case_is_read_and_written_again_as_it_is(tmp_path: Path) -> None:
    result = store.read_case(GOLDEN)
    assert result.case.case_id == "cartpole-strong/rsl_rl-kitless-cpu-n64-1x2-cold"
    assert [record.outcome for record in result.rounds] == ["completed", "crashed", "completed"]
    assert result.rounds[1].reason == "RuntimeError: rank 1 crashed"
    assert result.rounds[2].ranks[1].samples["iteration_time_s"] == (4.0, 2.3, 0.2)
    assert result.rounds[0].environment == replace(ENVIRONMENT, checks=(CHECK,))
    assert result.rounds[0].ranks[0].settings["tf32"] is False
    assert result.rounds[0].readings[0].columns["gpu0.slowdowns"] == ("idle", "", None)
    assert (result.rounds[0].turns, result.rounds[2].turns and result.rounds[2].turns.turns) == (None, 2)
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert [reduce.round_time_s(record) for record in result.completed] == document["benchmarks"][0]["stats"]["data"]

    again = written(result, tmp_path / "again.json")
    assert again["labscale"] == document["labscale"]
    assert again["benchmarks"] == document["benchmarks"]


def golden_copy(path: Path, edit: Callable[[dict[str, Any]], object] = lambda _: None) -> Path:
    document = json.loads(GOLDEN.read_text(encoding="utf-8"))
    edit(document)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda document: document.pop("labscale"), "not a result stored by labscale"),
        (
            lambda document: document["labscale"].update(schema_version=5),
            "schema_version is 5; this labscale reads 6. Read it with the labscale of commit a230a9f6",
        ),
        (lambda document: document["labscale"].update(x=1), "x: Extra inputs are not permitted"),
        (lambda document: document["labscale"]["runs"].clear(), "has no runs"),
        (lambda document: document["labscale"]["runs"][0].update(machine=1), "run 0 has machine 1 of 1"),
    ],
)
def test_an_edited_case_is_refused(tmp_path: Path, edit: Callable[[dict[str, Any]], object], message: str) -> None:
    path = golden_copy(tmp_path / "a.json", edit)
    with pytest.raises(StoreError, match=message) as caught:
        store.load_results(tmp_path)
    assert str(path) in str(caught.value)


def test_a_folder_that_is_not_one_set_of_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"contains no results. Run `nox -s bench"):
        store.load_results(tmp_path)
    (tmp_path / "cases").symlink_to("a" * 300)  # nobody can enter it
    with pytest.raises(StoreError, match=rf"^{tmp_path}/cases cannot be read: File name too long\."):
        store.load_results(tmp_path)
    (tmp_path / "cases").unlink()
    golden_copy(tmp_path / "a.json")
    golden_copy(tmp_path / "b.json")
    with pytest.raises(StoreError, match=r"a.json and .*b.json both contain cartpole-strong/"):
        store.load_results(tmp_path)
    (tmp_path / "b.json").write_text(GOLDEN.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(StoreError, match=r"b.json is corrupt, not JSON: EOF while"):
        store.load_results(tmp_path)
    for name in ("one", "two"):
        golden_copy(tmp_path / name / "cases" / "s" / "a.json")
    with pytest.raises(StoreError, match=r"is not one set of results; below it there are one, two\. .*one\.$"):
        store.load_results(tmp_path)


def test_a_campaign_without_a_stored_case_is_told_to_go_on_or_store(tmp_path: Path) -> None:
    """Each of its files was called a case to be moved away, which blocks ``bench`` and ``store``."""
    root = tmp_path / "runs" / "a b"
    for name in ("campaign.json", "raw/s/a/r0/record.json", "raw/s/a/r1/configuration.json", "cases/none"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("{}", encoding="utf-8")
    message = rf"^{root} is a campaign with no stored result yet\. .*`nox -s store -- '{root}'`\.$"
    for folder in (root, root / "raw", root / "raw" / "s" / "a" / "r0"):
        with pytest.raises(StoreError, match=message):
            store.load_results(folder)
    shutil.rmtree(root / "cases")
    for folder in (root, root.parent):
        with pytest.raises(StoreError, match=message):
            store.load_results(folder)
