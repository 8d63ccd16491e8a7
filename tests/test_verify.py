"""Real committed results, damaged in every way that matters: each damage has to be named, and nothing else."""

import json
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.stats import Stats

from reports import verify as program
from reports.verification.case_file import check_case
from reports.verification.finding import Finding, differing
from reports.verification.hashes import SUMS, write_hashes
from reports.verification.set_folder import verify_set
from reports.verification.statistics import NOT_RECOMPUTED, stats
from suite import store
from suite.a_a import twin_pairs, write_noise
from suite.errors import ResultsDiffer, StoreError, UsageError
from suite.schema import CaseResult, RunRecord
from suite.schema_telemetry import GpuTelemetry, Spread, TelemetrySummary
from tests.generated_results import full_results, make_case, make_result, write_results

COMMITTED = Path(__file__).resolve().parents[1] / "reports" / "results"
PAIRS = COMMITTED / "2026.11" / "h200-x4-pairs"
CASE = "cases/ant-weak/rl_games-kitless-n2048-1x2.json"
FAILED = {"name": "camera form", "feature": "cameras", "verdict": "failure", "found": "grey", "fault": "constant"}
Damage = Callable[[Any], None]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy without hashes, so that every damage has to be found by its meaning."""
    copy = shutil.copytree(PAIRS, tmp_path / "set")
    (copy / "SHA256SUMS").unlink()
    return copy


def damage(path: Path, change: Damage) -> None:
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


def findings(folder: Path) -> list[Finding]:
    return list(verify_set(folder, root=folder).findings)


def rounds(stored: Any) -> list[Any]:
    found: list[Any] = stored["labscale"]["case_result"]["rounds"]
    return found


def column(stored: Any, name: str, *, rank: int = 1) -> list[float]:
    found: list[float] = rounds(stored)[0]["ranks"][rank]["samples"][name]
    return found


def set_item(target: Any, key: Any, value: Any) -> None:
    target[key] = value


def scale(values: list[float], factor: float) -> None:
    values[:] = [value * factor for value in values]


def test_every_result_in_git_is_what_its_samples_say() -> None:
    verified = program.verify(COMMITTED)
    assert [str(finding) for finding in verified.findings] == []
    assert verified.cases >= 30
    assert verified.samples > 37_000
    assert verified.hashed_files >= 33
    assert [folder for folder in program.set_folders(COMMITTED) if not (folder / SUMS).is_file()] == []


def test_a_set_of_a_version_must_have_its_hashes(tmp_path: Path) -> None:
    copy = shutil.copytree(PAIRS, tmp_path / "v" / "theirs")
    (copy.parent / "report.toml").write_text('[[set]]\nfolder = "theirs"\ncontributed_by = "Lab"\n')
    assert findings(copy) == []
    (copy / SUMS).unlink()
    assert [(one.where, one.got) for one in findings(copy)] == [(SUMS, "missing")]
    assert program.main([str(copy.parent), "--write-hashes"]) == 0
    sums = (copy / SUMS).read_text()
    (copy / SUMS).write_text(sums.replace(sums[:8], "0" * 8, 1))
    assert [finding.what for finding in findings(copy)] == ["its SHA-256"]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: set_item(d["benchmarks"][0]["stats"], "median", 0.05), "stats.median"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "mean", 0.0893794), "stats.mean"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "q1", 0.08), "stats.q1"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "outliers", "0;0"), "stats.outliers"),
        (lambda d: set_item(d["benchmarks"][0]["stats"]["data"], 1, 0.09), "stats.data[1]"),
        (lambda d: d["benchmarks"][0]["stats"]["data"].pop(), "stats.data"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"]["total_fps"], 2, 1e6), "extra_info.total_fps[2]"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"], "rounds", [0, 1]), "extra_info.rounds"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"], "frames_per_iteration", 65536), "frames_per_iteration"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"]["case"], "num_envs", 512), "extra_info.case.num_envs"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"], "statistic", "the best"), "extra_info.statistic"),
        (lambda d: set_item(d["benchmarks"][0], "param", "another/case"), "param"),
        (lambda d: d.update(benchmarks=[]), "the number of benchmarks"),
        (
            lambda d: set_item(d["machine_info"]["environment"], "driver_version", "999.99"),
            "environment.driver_version",
        ),
        (lambda d: set_item(d["commit_info"], "id", "0" * 40), "commit_info.id"),
        (lambda d: rounds(d).pop(0), "the numbers of the rounds"),
        (lambda d: rounds(d)[1]["ranks"].pop(), "round 1: the ranks"),
        (lambda d: column(d, "reward_mean").pop(), "round 0, rank 1: the number of reward_mean"),
        (lambda d: set_item(column(d, "learning_time_s"), 7, None), "round 0, rank 1: learning_time_s"),
        (lambda d: rounds(d)[0]["ranks"][0].update(parameters_sha256=None), "round 0, rank 0: parameters_sha256"),
        (lambda d: rounds(d)[0]["ranks"][0].update(parameters_sha256="0" * 64), "round 0: the ranks' parameters"),
        (lambda d: rounds(d)[0]["ranks"][1].update(validity=[FAILED]), "round 0, rank 1: camera form"),
        (lambda d: rounds(d)[0].update(exit_code=1), "round 0: exit_code"),
        (lambda d: set_item(column(d, "iteration_time_s"), 9, 5.0), "round 0, rank 1: iteration 9 of 5 s"),
        (lambda d: scale(column(d, "learning_time_s"), -1.0), "round 0, rank 1: learning_time_s of iteration"),
        (lambda d: scale(column(d, "all_reduce_time_s"), 99.0), "round 0, rank 1: all_reduce_time_s of iteration"),
        (lambda d: scale(column(d, "iteration_time_s"), 0.5), "collection_time_s of iteration"),
        (lambda d: scale(column(d, "iteration_time_s"), 0.97), "stats.data[0]"),
        (lambda d: rounds(d)[2].update(outcome="crashed", reason=None), "the reason of round 2, crashed,"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damage_in_a_case_is_named(folder: Path, change: Damage, what: str) -> None:
    assert findings(folder) == []
    damage(folder / CASE, change)
    found = [finding for finding in findings(folder) if finding.where == CASE]
    assert any(what in finding.what for finding in found), found
    assert all(finding.got != finding.expected and finding.next_step for finding in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: set_item(d["labscale"], "schema_version", 99), "schema_version is 99"),
        (lambda d: set_item(column(d, "iteration_time_s"), 3, "fast"), "Input should be a valid number"),
        (lambda d: rounds(d)[0].update(extra="field"), "Unexpected keyword argument"),
        (lambda d: d.pop("labscale"), "not a case stored by labscale"),
    ],
)
def test_a_file_that_does_not_follow_the_schema_is_named(folder: Path, change: Damage, said: str) -> None:
    damage(folder / CASE, change)
    (finding, *_) = [finding for finding in findings(folder) if finding.where == CASE]
    assert said in finding.got


def test_a_torn_file_is_named(folder: Path) -> None:
    text = (folder / CASE).read_text()
    (folder / CASE).write_text(text[: len(text) // 2])
    assert "corrupt, not JSON" in next(str(one) for one in findings(folder) if one.where == CASE)


def test_a_file_under_another_name_and_a_case_twice_are_named(folder: Path) -> None:
    other = folder / "cases" / "ant-weak" / "rl_games-kitless-n4096-1x4.json"
    shutil.copy(folder / CASE, other)
    found = [finding.what for finding in findings(folder)]
    assert "the file's name" in found
    assert "the case ant-weak/rl_games-kitless-n2048-1x2" in found


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: set_item(d[3], "ours_s", 0.05), "[3].ours_s"),
        (lambda d: set_item(d[3], "library_s", 0.05), "[3].library_s"),
        (lambda d: set_item(d[3], "round", 7), "round 7 of"),
    ],
)
def test_damage_in_a_pair_is_named(folder: Path, change: Damage, what: str) -> None:
    damage(folder / "upstream.json", change)
    (finding,) = findings(folder)
    assert finding.where == "upstream.json"
    assert what in finding.what


def test_hashes_find_what_changes_no_figure(folder: Path) -> None:
    write_hashes(folder)
    assert findings(folder) == []
    done = subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=folder, check=False)
    assert done.returncode == 0
    (folder / CASE).write_text((folder / CASE).read_text() + "\n")
    assert [finding.what for finding in findings(folder)] == ["its SHA-256"]
    (folder / CASE).unlink()
    missing = [finding for finding in findings(folder) if finding.where == CASE]
    assert [finding.got for finding in missing] == ["missing"]
    shutil.copy(PAIRS / CASE, folder / CASE)
    shutil.copy(PAIRS / CASE, folder / "cases" / "ant-weak" / "new.json")
    assert "not in SHA256SUMS" in {finding.got for finding in findings(folder)}


def test_a_noise_budget_follows_from_the_twins(tmp_path: Path) -> None:
    case = make_case()
    twin = replace(case, case_id=f"{case.case_id}-aa")
    results = [make_result(case, 1.0, 1.1, 1.2), make_result(twin, 1.0, 1.2, 1.3)]
    write_results(results[:1], tmp_path)
    path = tmp_path / "a_a" / f"{twin.case_id}.json"
    path.parent.mkdir(parents=True)
    (tmp_path / "cases" / f"{case.case_id}.json").rename(tmp_path / "kept.json")
    for result, place in zip(results, (tmp_path / "cases" / f"{case.case_id}.json", path), strict=True):
        store.write_case(result, place)
    write_noise(twin_pairs(results), tmp_path / "noise.json")
    assert findings(tmp_path) == []
    damage(tmp_path / "noise.json", lambda d: d.update(noise_budget=0.001))
    assert [finding.what for finding in findings(tmp_path)] == ["noise_budget"]


def test_the_verdict_of_an_interference_test_follows_from_its_rounds(tmp_path: Path) -> None:
    copy = shutil.copytree(PAIRS.parent / "h200-x2-envs", tmp_path / "set")
    (copy / SUMS).unlink()
    assert findings(copy) == []
    damage(copy / "packing.json", lambda d: d.update(difference=0.001))
    assert [(finding.where, finding.what) for finding in findings(copy)] == [("packing.json", ".difference")]
    (test,) = store.load_results(copy / "interference")
    path = copy / "interference" / f"{test.case.case_id}.json"
    path.unlink()
    store.write_case(replace(test, rounds=test.rounds[:11]), path)
    assert [finding.got for finding in findings(copy)] == ["11"]
    path.unlink()
    assert [finding.got for finding in findings(copy)] == ["0"]


def with_telemetry(record: RunRecord) -> RunRecord:
    """As a sampler would have seen the steady iterations of a generated record, all but the first."""
    times_s = record.ranks[0].samples["iteration_time_s"]
    window_s = sum(time_s for time_s in times_s[1:] if time_s is not None)
    frames = (len(times_s) - 1) * record.case.frames_per_iteration
    gpus = tuple(GpuTelemetry(index=index, energy_counter_j=100.0 + index) for index in range(2))
    summary = TelemetrySummary(
        window_start_unix_s=0.0,
        window_s=window_s,
        rate_hz=5.0,
        num_samples=10,
        gpus=gpus,
        power_w=Spread(min=1.0, mean=2.0, max=3.0),
        energy_j=201.0,
        frames_per_joule=frames / 201.0,
    )
    return replace(record, telemetry=summary)


@pytest.mark.parametrize(
    ("name", "damaged_to"), [("energy_j", 7.0), ("energy_j", None), ("window_s", 7.0), ("frames_per_joule", 7.0)]
)
def test_damage_in_telemetry_is_named(name: str, damaged_to: float | None) -> None:
    plain = make_result(make_case(world_size=2), 0.5)
    result = replace(plain, rounds=tuple(with_telemetry(record) for record in plain.rounds))
    assert telemetry_findings(result) == []
    telemetry = result.rounds[0].telemetry
    assert telemetry is not None
    change: dict[str, Any] = {name: damaged_to}
    changed = replace(telemetry, **change)
    damaged = replace(result, rounds=(replace(result.rounds[0], telemetry=changed),))
    assert any(name in what for what in telemetry_findings(damaged))


def test_an_energy_is_that_of_its_gpus_where_nodes_are_missing_too() -> None:
    plain = make_result(make_case(world_size=2), 0.5)
    record = with_telemetry(plain.rounds[0])
    assert record.telemetry is not None
    for energy_j, is_named in ((7.0, True), (None, False)):  # it may say nothing of all GPUs, and nothing false
        telemetry = replace(record.telemetry, missing_nodes=(1,), energy_j=energy_j, frames_per_joule=None)
        result = replace(plain, rounds=(replace(record, telemetry=telemetry),))
        assert any("energy_j" in what for what in telemetry_findings(result)) == is_named


@pytest.mark.parametrize(
    ("of_gpu", "of_all", "named"),
    [
        (100.0, 200.0, []),
        (99.5, 200.9, []),  # the mean of readings, as earlier versions stored it
        (98.0, 200.0, ["gpus[1].power_w.mean"]),
        (None, 200.0, ["gpus[1].power_w.mean"]),
        (100.0, 203.0, ["power_w.mean"]),
        (100.0, None, ["power_w.mean"]),
    ],
)
def test_a_mean_power_is_held_to_energy_over_time(of_gpu: float | None, of_all: float | None, named: list[str]) -> None:
    plain = make_result(make_case(world_size=2), 0.5)
    record = with_telemetry(plain.rounds[0])
    assert record.telemetry is not None
    powers = [None if mean is None else Spread(min=1.0, mean=mean, max=900.0) for mean in (100.0, of_gpu, of_all)]
    gpus = tuple(
        replace(gpu, energy_integrated_j=100.0 * record.telemetry.window_s, power_w=power_w)
        for gpu, power_w in zip(record.telemetry.gpus, powers[:2], strict=True)
    )
    telemetry = replace(record.telemetry, gpus=gpus, power_w=powers[2])
    found = telemetry_findings(replace(plain, rounds=(replace(record, telemetry=telemetry),)))
    assert found == [f"round 0, telemetry.{name}" for name in named]
    telemetry = replace(telemetry, window_s=0.0)
    found = telemetry_findings(replace(plain, rounds=(replace(record, telemetry=telemetry),)))
    assert found == ["round 0, telemetry.window_s"]


def telemetry_findings(result: CaseResult) -> list[str]:
    document: dict[str, Any] = {"labscale": {"case_result": {"rounds": [{"environment": {}}]}}, "benchmarks": []}
    found = check_case(f"cases/{result.case.case_id}.json", document, result)
    return [finding.what for finding in found if "telemetry" in finding.what]


def test_rounds_of_different_work_are_named() -> None:
    result = make_result(make_case(), 0.5, 0.5)
    rounds = tuple(replace(record, workload={"envs": index}) for index, record in enumerate(result.rounds))
    document: dict[str, Any] = {"labscale": {"case_result": {"rounds": [{"environment": {}}]}}}
    found = check_case("x", document, replace(result, rounds=rounds))
    assert "the workload's fingerprint" in {finding.what for finding in found}


def samples() -> Iterator[list[float]]:
    generator = random.Random(7)  # noqa: S311 - data, not secrets
    for count in range(1, 16):
        yield [generator.uniform(0.9, 1.1) for _ in range(count)] + ([3.0] if count > 5 else [])


@pytest.mark.parametrize("data", list(samples()), ids=len)
def test_statistics_agree_with_pytest_benchmark(data: list[float]) -> None:
    theirs: Any = Stats()  # type: ignore[no-untyped-call]
    for value in data:
        theirs.update(value)
    expected = {name: value for name, value in theirs.as_dict().items() if name not in NOT_RECOMPUTED}
    ours = stats(data)
    assert ours.pop("data") == data
    assert [str(one) for one in differing("x", "stats", ours, expected)] == []
    assert ours["median"] == statistics.median(data)


def test_the_program_says_what_differs_and_how_many_it_looked_at(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(folder / "cases", folder / "report" / "data" / "results" / "cases")  # for download: no other cases
    assert program.main([str(folder.parent)]) == 0
    assert "9 cases, 26 rounds" in capsys.readouterr().out
    damage(folder / CASE, lambda d: set_item(d["benchmarks"][0]["stats"], "median", 0.05))
    assert program.main([str(folder.parent)]) == ResultsDiffer.exit_code
    assert f"set/{CASE}: stats.median is 0.05, expected 0.0905" in capsys.readouterr().out
    assert program.main([str(folder), "--write-hashes"]) == ResultsDiffer.exit_code
    assert not (folder / "SHA256SUMS").exists()
    assert program.main([str(folder), "--json"]) == ResultsDiffer.exit_code
    printed = capsys.readouterr().out
    assert json.loads(printed[printed.index("{\n") :])["findings"][0]["got"] == "0.05"


def test_hashes_that_cannot_be_written_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / SUMS).mkdir()
    assert program.main([str(folder), "--write-hashes"]) == StoreError.exit_code
    assert f"{folder / SUMS} cannot be written: Is a directory" in capsys.readouterr().err


def test_nothing_to_verify_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main([str(tmp_path)]) == UsageError.exit_code
    assert "nothing to verify" in capsys.readouterr().err


def test_a_document_without_samples_may_lack_figures_but_not_reasons(tmp_path: Path) -> None:
    write_results(full_results()[-1:], tmp_path)
    found = {finding.what for finding in findings(tmp_path)}
    assert "the number of benchmarks" not in found
    assert not any(what.startswith("the reason") for what in found)
