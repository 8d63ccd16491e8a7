"""The store of records: what goes in comes out bit for bit, and nothing that is broken goes in or out."""

import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from suite.errors import StoreError
from suite.records import store
from suite.schema.record import CaseResult
from tests.conftest import CaseMaker
from tests.fixtures.results.stored_rounds import RecordMaker, make_rank, stored_round

ROOT = Path(__file__).resolve().parents[4]


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


def set_nan(document: dict[str, Any]) -> None:
    document["ranks"][1]["samples"]["reward_mean"][2] = math.nan


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda document: document.update(colour="red"), "colour"),
        (lambda document: document["configuration"].pop("seed"), "configuration.seed"),
        (set_nan, "ranks.1.samples.reward_mean.2"),
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


@pytest.mark.parametrize("content", [b"", b'{"case": {"case_', b"[]", b"\xff\xfe"])
def test_a_corrupt_record_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "record.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=str(path)):
        store.read_record(path)


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
