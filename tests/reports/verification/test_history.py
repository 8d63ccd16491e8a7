"""Versions compared: the verifier finds the words and changes that the page says, and says what it did not check."""

import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from reports.site import figure_files
from reports.topics.history.comparison import compare
from reports.verification import formulas
from reports.verification.command import main, verify
from reports.verification.pages.history import case_by_case
from reports.verification.samples import case_file, set_folder
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import PAGE_FIGURES, StoredVersion
from suite.files.paths import ROOT
from suite.schema.record import CaseResult, RunRecord
from suite.schema.transport import Transport
from tests.fixtures.results.damaged_results import damage, rounds
from tests.fixtures.results.generated_results import make_case, make_record, make_result, on_gpus

RESULTS = ROOT / "reports" / "results"
QUIET = (1.0, 1.002, 1.004, 0.998, 1.001)
CASE = make_case()


def measured(factor: float = 1.0, *, rounds: int = len(QUIET), **changes: object) -> CaseResult:
    return make_result(replace(CASE, **changes), *(factor * time_s for time_s in QUIET[:rounds]))  # type: ignore[arg-type]


def with_failures(result: CaseResult, number: int) -> CaseResult:
    """The same with further rounds that crashed."""
    rounds = [make_record(result.case, index=10 + index, outcome="crashed", reason="x") for index in range(number)]
    return replace(result, rounds=(*result.rounds, *rounds))


def changed(result: CaseResult, change: Callable[[RunRecord], RunRecord]) -> CaseResult:
    return replace(result, rounds=tuple(map(change, result.rounds)))


def on_kernel(kernel: str) -> Callable[[RunRecord], RunRecord]:
    return lambda record: replace(record, environment=replace(record.environment, kernel=kernel))


def with_setting(name: str, value: str, *, first: int = 0) -> Callable[[RunRecord], RunRecord]:
    """Rounds before ``first`` do not have it."""
    return lambda record: replace(
        record,
        ranks=tuple(
            replace(rank, settings={**rank.settings, **({name: value} if record.round >= first else {})})
            for rank in record.ranks
        ),
    )


def over(word: Any) -> Callable[[RunRecord], RunRecord]:
    return lambda record: replace(record, transport=Transport(library="nccl", between_nodes=(word,)))


SKIPPED = CaseResult(case=CASE, rounds=(make_record(CASE, outcome="skipped", reason="x"),))
SIDES: dict[str, tuple[CaseResult, CaseResult, str]] = {
    "equal": (measured(), measured(), "unchanged"),
    "slower": (measured(), measured(1.1), "regression"),
    "faster": (measured(1.1), measured(), "improvement"),
    "near the threshold": (measured(), measured(1.02), "inconclusive"),
    "two rounds": (measured(rounds=2), measured(1.1), "inconclusive"),
    "most fail now": (measured(), with_failures(measured(), 6), "failed"),
    "most failed before too": (with_failures(measured(), 6), with_failures(measured(), 6), "unchanged"),
    "none completes now": (measured(), with_failures(replace(measured(), rounds=()), 2), "failed"),
    "none completed before": (with_failures(replace(measured(), rounds=()), 2), measured(), "inconclusive"),
    "not tried now": (measured(), SKIPPED, "incomparable"),
    "not tried before": (SKIPPED, measured(), "inconclusive"),
    "another size": (measured(), measured(minibatch_size=1024), "incomparable"),
    "another size that never ran": (measured(), replace(SKIPPED, case=replace(CASE, seed=7)), "incomparable"),
    "longer time limits": (measured(), measured(timeout_s=9.0, hang_timeout_s=8.0), "unchanged"),
    "another kernel": (measured(), changed(measured(), on_kernel("6.2")), "incomparable"),
    "two torches": (*(changed(measured(), with_setting("versions.torch", "2.12", first=2)),) * 2, "incomparable"),
    "another NUMA node": (measured(), changed(measured(), with_setting("gpu_numa_node", "1")), "unchanged"),
    "a graph that old rounds do not say": (
        measured(),
        changed(measured(), with_setting("cuda_graph", "1")),
        "unchanged",
    ),
    "a graph that some rounds say": (
        changed(measured(), with_setting("cuda_graph", "1", first=2)),
        changed(measured(), with_setting("cuda_graph", "1")),
        "unchanged",
    ),
    "another graph": (
        changed(measured(), with_setting("cuda_graph", "0")),
        changed(measured(), with_setting("cuda_graph", "1")),
        "incomparable",
    ),
    "another network": (changed(measured(), over("infiniband")), changed(measured(), over("ethernet")), "incomparable"),
    "a network that old rounds do not say": (measured(), changed(measured(), over("ethernet")), "unchanged"),
    "a fingerprint that old rounds lack": (
        measured(),
        changed(measured(), lambda record: replace(record, workload={"task": "x"})),
        "incomparable",
    ),
    "another fingerprint": (
        changed(measured(), lambda record: replace(record, workload={"task": "y"})),
        changed(measured(), lambda record: replace(record, workload={"task": "x"})),
        "incomparable",
    ),
}


def stored(result: CaseResult, *, is_old: bool) -> StoredVersion:
    """What the verifier reads of it; an old case does not say what it has by default."""
    found = stored_case(result)
    if is_old:
        for name in [name for name, value in found.case.items() if value in ("closed", "kept", False)]:
            del found.case[name]
    one = StoredSet(name="set", folder=Path("set"), cases=(found, *SETTLED), findings=(), has_plan=False)
    return StoredVersion(sets=(one,), name="2026.9" if is_old else "2026.10")


def stored_case(result: CaseResult) -> StoredCase:
    document, rule = json.loads(json.dumps(asdict(result))), formulas.MSER_RULE
    where = f"cases/{result.case.case_id}.json"
    found = StoredCase(where=where, case=document["case"], rounds=document["rounds"], ended_because=None, rule=rule)
    for record in found.completed:
        found.published_s[record["round"]] = formulas.seconds_per_iteration(record, rule)
    return found


# A case on a GPU, without which no speeds are shown.
SETTLED = [stored_case(result) for result in on_gpus([make_result(make_case("ant-weak"), 1.0)])]


@pytest.mark.parametrize(("before", "now", "word"), SIDES.values(), ids=SIDES)
def test_the_verifier_says_of_a_case_what_the_page_says(before: CaseResult, now: CaseResult, word: str) -> None:
    (said,) = compare([before], [now]).cases
    found = case_by_case.figures(stored(before, is_old=True), stored(now, is_old=False))
    row = found[f"set: {CASE.case_id} since 2026.9"]
    assert (said.word, row["verdict"]) == (word, word)
    if said.change is None:
        assert (row["time_change"], row["time_change_interval"]) == (None, None)
    else:
        assert row["time_change"] == pytest.approx(said.change.value)
        assert row["time_change_interval"] == (said.change.interval and pytest.approx([*said.change.interval]))


def test_a_set_of_somebody_else_is_not_compared() -> None:
    before, now = stored(measured(), is_old=True), stored(measured(), is_old=False)
    assert case_by_case.figures(before, now)
    assert case_by_case.figures(before, replace(now, contributors={"set": "Ada"})) == {}


# --- folders of versions ---


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    """Three versions of sets in git, under names of their own."""
    sets = {
        "2026.9": {"shadow": "2026.11/h200-x2-shadow", "turns": "2026.12/h100-turns"},
        "2026.10": {"shadow": "2026.12/h100-x2-shadow", "turns": "2026.12/h100-turns-2"},
        "2026.11": {"again": "2026.12/h100-x2-shadow", "two": "2026.11/h200-x2-shadow"},
    }
    for version, names in sets.items():
        for name, source in names.items():
            shutil.copytree(RESULTS / source, tmp_path / version / name)
        (tmp_path / version / "report.toml").write_text("".join(f'[[set]]\nfolder = "{name}"\n' for name in names))
        figure_files.write(tmp_path / version)
    return tmp_path


def of_pages(folder: Path) -> list[str]:
    return [str(finding) for finding in verify(folder).findings if finding.where.endswith(PAGE_FIGURES)]


def history(version: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads((version / PAGE_FIGURES).read_text())["pages"].get("history", {})
    return said


def test_versions_are_compared_with_the_one_before(versions: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    original = case_file.read_case

    def counting(path: Path, where: str) -> Any:
        read.append(path)
        return original(path, where)

    monkeypatch.setattr(set_folder, "read_case", counting)
    assert of_pages(versions) == []
    assert len(read) == len({*read}), "a version was read twice"
    assert verify(versions).unchecked == ()
    rows = history(versions / "2026.10")
    words = {row.get("verdict") for row in rows.values()}
    assert {"regression", "inconclusive", "incomparable"} <= words
    assert history(versions / "2026.9") == {}
    assert history(versions / "2026.11")["all"]["configurations_in_several_versions"] == 2


def test_a_version_alone_is_said_not_to_be_compared(versions: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(versions / "2026.9")
    rows = history(versions / "2026.10")
    of, row = next((of, row) for of, row in rows.items() if row.get("time_change"))
    text = (versions / "2026.10" / PAGE_FIGURES).read_text()
    (versions / "2026.10" / PAGE_FIGURES).write_text(text.replace(json.dumps(row), json.dumps({**row, "verdict": of})))
    assert of_pages(versions / "2026.10") == []
    main([str(versions / "2026.10")])
    said = capsys.readouterr().out
    pages = "acceptance, hardware-before, history, index-before, support"
    assert f".: not checked, because 2026.9 is not beside it: what its pages {pages} compare." in said


def test_what_only_older_versions_have_is_computed_again(versions: Path) -> None:
    path = versions / "2026.10" / PAGE_FIGURES
    document = json.loads(path.read_text())
    pages = document["pages"]
    assert pages["index-before"]["only in 2026.9"]["gpus"] == ["NVIDIA H200"]
    assert {*pages["hardware-before"]} == {"NVIDIA H100 80GB HBM3 in 2026.9", "NVIDIA H200, only in 2026.9"}
    pages["index-before"]["only in 2026.9"]["gpus"] = ["NVIDIA B200"]
    for row in pages["hardware-before"].values():
        row["runs"] += 1
    path.write_text(json.dumps(document))
    assert [said.partition(" is ")[0] for said in of_pages(versions / "2026.10")] == [
        f"{PAGE_FIGURES}: hardware-before: NVIDIA H100 80GB HBM3 in 2026.9.runs",
        f"{PAGE_FIGURES}: hardware-before: NVIDIA H200, only in 2026.9.runs",
        f"{PAGE_FIGURES}: index-before: only in 2026.9.gpus[0]",
    ]


def test_a_forged_change_is_named_beside_the_older_version(versions: Path) -> None:
    path = versions / "2026.10" / PAGE_FIGURES
    path.write_text(path.read_text().replace('"verdict": "regression"', '"verdict": "unchanged"', 1))
    (said,) = of_pages(versions / "2026.10")
    assert "verdict is unchanged, expected regression" in said


def test_an_older_version_that_is_left_out_is_named(versions: Path) -> None:
    path = versions / "2026.10" / PAGE_FIGURES
    path.write_text(path.read_text().replace('"older": ["2026.9"]', '"older": []'))
    (said,) = of_pages(versions / "2026.10")
    assert f"{PAGE_FIGURES}: older is [], expected ['2026.9']" in said
    document = json.loads(path.read_text())
    del document["older"]
    path.write_text(json.dumps(document))
    assert "cannot be checked to its end" in of_pages(versions / "2026.10")[0]


def test_while_records_of_an_older_version_are_rejected_nothing_is_compared_with_it(versions: Path) -> None:
    name = "2026.9/shadow/cases/shadow-horizontal/rsl_rl-kitless-n1024-1x2.json"
    damage(versions / name, lambda stored: rounds(stored)[0].update(ranks=[]))
    for folder in (versions / "2026.10", versions):  # alone, and verified with the older one
        (said,) = (said for said in of_pages(folder) if "2026.9/page" not in said and "2026.11/page" not in said)
        assert f"not made (records are rejected in 1 case file: {name})" in said


def test_an_older_version_with_a_torn_list_of_sets_is_as_if_it_were_not_there(versions: Path) -> None:
    (versions / "2026.9" / "report.toml").write_text("[[set")
    assert of_pages(versions / "2026.10") == []
    assert len(verify(versions / "2026.10").unchecked) == 1
