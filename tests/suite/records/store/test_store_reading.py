"""Reading stored cases: the golden file, edited and misplaced files."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.errors import StoreError
from suite.records import store
from suite.schema.record import CheckResult
from suite.statistics import reduce
from tests.fixtures.results.stored_rounds import ENVIRONMENT, written

GOLDEN = Path(__file__).parents[3] / "golden" / "store_case.json"
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
        (lambda document: document.pop("labscale"), "not a case stored by labscale"),
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


def test_a_folder_that_cannot_be_told_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"contains no results. Run `nox -s bench"):
        store.load_results(tmp_path)
    golden_copy(tmp_path / "a.json")
    golden_copy(tmp_path / "b.json")
    with pytest.raises(StoreError, match=r"a.json and .*b.json both contain the case cartpole-strong/"):
        store.load_results(tmp_path)
    (tmp_path / "b.json").write_text(GOLDEN.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    with pytest.raises(StoreError, match=r"b.json is corrupt, not JSON"):
        store.load_results(tmp_path)


def test_sets_below_a_folder_are_named_and_none_is_called_corrupt(tmp_path: Path) -> None:
    for name in ("one", "two"):
        golden_copy(tmp_path / name / "cases" / "s" / "a.json")
        (tmp_path / name / "campaign.json").write_text("{}", encoding="utf-8")
    with pytest.raises(
        StoreError, match=r"is not one set of results; below it there are one, two\. Name one"
    ) as caught:
        store.load_results(tmp_path)
    assert f"for example {tmp_path / 'one'}." in str(caught.value)


def campaign_without_cases(root: Path) -> None:
    """Write the folder that ``bench`` leaves during its first round, after one more round has ended."""
    (root / "cases").mkdir(parents=True)
    (root / "campaign.json").write_text("{}", encoding="utf-8")
    for number, name in enumerate(("record.json", "configuration.json")):
        path = root / "raw" / "s" / "a" / f"r{number}" / name
        path.parent.mkdir(parents=True)
        path.write_text("{}", encoding="utf-8")


def test_a_campaign_without_a_stored_case_is_told_to_go_on_or_store(tmp_path: Path) -> None:
    """Each of its files was called a case to be moved away, which blocks ``bench`` and ``store``."""
    root = tmp_path / "runs" / "a b"
    campaign_without_cases(root)
    said = rf"^{root} is a campaign of which no case is stored yet\. .*again to go on.*`nox -s store -- '{root}'`\.$"
    for folder in (root, root / "raw", root / "raw" / "s" / "a" / "r0"):
        with pytest.raises(StoreError, match=said):
            store.load_results(folder)
    (root / "cases").rmdir()
    for folder in (root, root.parent):
        with pytest.raises(StoreError, match=said):
            store.load_results(folder)
