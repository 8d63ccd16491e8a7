"""The store of cases: completed rounds are the samples of a benchmark, and rounds that do not fit are refused."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from unittest import mock

import pytest

from suite.errors import StoreError
from suite.records import store
from suite.replay import bench_case
from suite.schema.record import CaseResult
from suite.statistics import reduce
from tests.conftest import CaseMaker
from tests.fixtures.results.stored_rounds import RecordMaker, stored_round, written

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def make_record(make_case: CaseMaker) -> RecordMaker:
    return partial(stored_round, case=make_case())


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
    samples_s = [fmean([0.3, 3.14159265]), fmean([2.3, 3.14159265])]

    (benchmark,) = document["benchmarks"]
    assert benchmark["stats"]["data"] == samples_s
    assert benchmark["extra_info"]["runs"] == [0, 2]

    machine = document["machine_info"]
    assert machine["node"] == "redacted"
    assert "flags" not in machine["cpu"]
    assert machine["versions.torch"] == "2.11.0"
    assert document["commit_info"] == {"project": "labscale", "id": "0" * 40, "dirty": False}

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
    environment = os.environ | {"PYTHONPATH": str(checkout)}
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
    mixed: CaseResult,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: BaseException,
    raised: type[BaseException],
    message: str,
) -> None:
    monkeypatch.setattr(bench_case, "extra_info", mock.Mock(side_effect=fault))
    with pytest.raises(raised, match=message):
        store.write_cases({tmp_path / "a.json": mixed})
    assert not (tmp_path / "a.json").exists()


def test_rounds_that_do_not_belong_together_are_refused(
    make_record: RecordMaker, make_case: CaseMaker, tmp_path: Path
) -> None:
    record = make_record()
    for rounds, message in (
        ((), "has no runs"),
        ((record, record), r"are \[0, 0\]; each may be there once"),
        ((make_record(case=make_case(seed=1)),), "run 0 is of another case"),
        ((replace(record, ranks=record.ranks[:1]),), r"is not valid: of run 0, its ranks are \[0\], needed are 0 to 1"),
    ):
        with pytest.raises(StoreError, match=message):
            store.write_cases({tmp_path / "a.json": CaseResult(case=record.case, rounds=rounds)})
    assert list(tmp_path.iterdir()) == []


def test_the_client_of_pytest_benchmark_reads_stored_cases_in_the_checkout_too() -> None:
    """It reads ``tests/conftest.py`` there, and no folder of ours is on its path."""
    client = Path(sys.executable).with_name("pytest-benchmark")
    golden = Path(__file__).parents[3] / "golden" / "store_case.json"
    done = subprocess.run([client, "compare", str(golden)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cartpole-strong/rsl_rl-kitless-cpu-n64-1x2" in done.stdout
