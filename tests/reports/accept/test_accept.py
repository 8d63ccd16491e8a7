"""The command ``accept`` on generated machines: its answers, the part it names, its text, and what it refuses."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pytest

from reports.__main__ import main as session
from reports.accept.judgement import JudgedPart
from reports.accept.parts import PARTS, placed
from suite.errors import StoreError, UsageError
from suite.files.paths import ROOT
from suite.schema.observations import TurnsTaken
from suite.schema.record import CaseResult, RunRecord
from tests.fixtures.results.generated_machines import (
    CASES,
    MODEL,
    changed,
    elsewhere,
    machine,
    with_settings,
    with_throttling,
    write_published,
)
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results

GOLDEN: Final = ROOT / "tests" / "golden" / "accept.txt"
SHARED: Final = {"beside": "yes", "unknown": "unknown"}  # set -> whether it shared its machine
COLUMNS: Final = ("iteration_time_s", "environment_step_time_s", "learning_time_s", "all_reduce_time_s")
SLOW: Final = machine("handed", 2.5)
CARTPOLE: Final = make_case("cartpole-strong", device="cuda")
CRASHED: Final = failed_result(CARTPOLE, outcome="crashed", reason="RuntimeError: generated")
SHARED_GPU: Final = make_result(make_case("cartpole-learning", device="cuda", only_learning=True), 9.0, 9.0, 9.0)

type Accept = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_published(tmp_path_factory.mktemp("published"))


@pytest.fixture
def accept(tmp_path: Path, published: Path, capsys: pytest.CaptureFixture[str]) -> Accept:
    """Judge results among published machines: the exit code, and all that was printed."""

    def run(results: Sequence[CaseResult], *options: str, published: Path = published) -> tuple[int, str]:
        shutil.rmtree(tmp_path / "results", ignore_errors=True)
        folder = write_results(results, tmp_path / "results")
        code = session("accept", [str(folder), "--published", str(published), *options])
        output = capsys.readouterr()
        assert "Traceback" not in output.err
        return code, output.out + output.err

    return run


def unprobed(record: RunRecord) -> RunRecord:
    ranks = (
        replace(rank, samples={name: column for name, column in rank.samples.items() if "probe" not in name})
        for rank in record.ranks
    )
    return replace(record, ranks=tuple(ranks))


def slow_start(record: RunRecord) -> RunRecord:
    return replace(record, ranks=tuple(replace(rank, phases_s={"imports": 40.0}) for rank in record.ranks))


def slow_start_in_turns(record: RunRecord) -> RunRecord:
    return replace(slow_start(record), turns=TurnsTaken(beside=(), turns=3, turn_s=2.5))


def starts(label: str, times: float) -> list[CaseResult]:
    """The cases of a machine as warm starts, each beside a cold one."""

    def of(result: CaseResult, cache: Literal["kept", "empty"]) -> CaseResult:
        old = result.case
        case = replace(old, case_id=f"{old.case_id}-{cache}", series=f"{old.series}-start-up", kernel_cache=cache)
        return replace(result, case=case, rounds=tuple(replace(record, case=case) for record in result.rounds))

    return [start for result in machine(label, times) for start in (of(result, "kept"), of(result, "empty"))]


def test_a_machine_twice_as_slow_is_slow_and_the_text_is_this(accept: Accept) -> None:
    code, output = accept(SLOW)
    lines = [line.rstrip() for line in output.splitlines()]
    assert (code, "\n".join(lines) + "\n") == (1, GOLDEN.read_text())


@pytest.mark.parametrize(("times", "word"), [(0.8, "fast"), (1.0, "within"), (1.25, "within")])
def test_a_machine_in_the_range_or_before_it_is_accepted(accept: Accept, times: float, word: str) -> None:
    code, output = accept(machine("handed", times))
    assert code == 0
    rows = [line for line in output.splitlines() if line.strip().startswith(CASES[0].series)]
    assert [row.split()[-1] for row in rows] == [word, word]


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        (
            {"iteration_time_s": 2.0, "core_probe_time_s": 2.0, "environment_step_time_s": 3.0},
            "the CPU core (core probe 200 µs, elsewhere at most 112)",
        ),
        (
            {"iteration_time_s": 2.0, "learning_time_s": 4.4},
            "likely the GPU or its driver; 100% of the lost time is in its part 'learning'",
        ),
        (
            {"iteration_time_s": 2.0, "environment_step_time_s": 3.0},
            "likely the GPU or its driver; 100% of the lost time is in its part 'environment step'",
        ),
        (
            {"iteration_time_s": 1.6, "learning_time_s": 3.0, "all_reduce_time_s": 7.0},
            "the interconnect (all-reduce 0.0707 s, elsewhere at most 0.0126)",
        ),
    ],
)
def test_the_part_whose_time_grew_is_named(accept: Accept, columns: dict[str, float], named: str) -> None:
    code, output = accept(machine("handed", columns=columns))
    assert code == 1
    assert named in output


def test_a_throttled_gpu_is_named(accept: Accept, tmp_path: Path) -> None:
    watched = write_published(tmp_path / "watched", throttled=0.0)
    slow = machine("handed", columns=dict.fromkeys(COLUMNS, 2.0))
    code, output = accept(with_throttling(slow, 0.4), published=watched)
    assert code == 1
    assert "the GPU (throttled 40 %, elsewhere at most 0)" in output


@pytest.mark.parametrize(
    ("results", "code", "shown"),
    [
        (changed(SLOW, unprobed), 1, "likely the GPU, its driver or a CPU core"),
        (elsewhere(SLOW, driver_version="999.1"), 1, "Driver: 999.1 here; published: "),
        # A slow disk is in no iteration.
        (changed(machine("handed"), slow_start), 0, "the disk (imports 40 s, elsewhere at most 4)"),
        ([replace(result, rounds=result.rounds[:2]) for result in SLOW], 2, "open: 2 runs completed"),
        (with_settings(SLOW, **{"versions.torch": "2.12.0"}), 2, "torch 2.11.0 there"),
        (with_settings(SLOW, **{"versions.python": "3.13.0", "versions.own": "1"}), 1, ""),
        ([make_result(replace(CASES[0], minibatch_size=64), 1.0, 1.0, 1.0)], 2, "no other published machine ran it"),
        ([*machine("handed"), CRASHED], 2, f"no run completed of {CARTPOLE.case_id}"),
        ([*SLOW, CRASHED], 1, ""),
        ([CRASHED], 2, f"no run completed of {CARTPOLE.case_id}"),
        (starts("handed", 9.0), 2, ""),
        ([make_result(make_case("cartpole-strong"), 1.0)], UsageError.exit_code, "have no run on a GPU"),
        ([SHARED_GPU], UsageError.exit_code, "have no run with times"),
        ([*SLOW, SHARED_GPU], 1, f"shared a GPU and have no times: {SHARED_GPU.case.case_id}"),
    ],
)
def test_what_decides_beside_the_times(accept: Accept, results: list[CaseResult], code: int, shown: str) -> None:
    exit_code, output = accept(results)
    assert exit_code == code
    assert shown in output


@pytest.mark.parametrize(("change", "part"), [(unprobed, "core probe"), (slow_start_in_turns, "disk")])
def test_a_part_that_cannot_be_compared_is_not_named(
    accept: Accept, change: Callable[[RunRecord], RunRecord], part: str
) -> None:
    code, output = accept(changed(machine("handed"), change))
    assert (code, part in output) == (0, False)


def test_the_machine_itself_runs_beside_others_and_starts_are_not_among_the_published(
    accept: Accept, tmp_path: Path
) -> None:
    more = write_published(tmp_path / "more")
    version = more / "2026.11"
    write_results(starts("host Z", 9.0), version / "starts")
    for label, name in (("handed", "handed"), ("host X", "beside"), ("host Y", "unknown")):
        write_results(machine(label, 9.0), version / name)
    manifest = version / "report.toml"
    stated = "".join(f'[[set]]\nfolder = "{name}"\nshared_machine = "{word}"\n' for name, word in SHARED.items())
    manifest.write_text(manifest.read_text() + stated)
    code, output = accept(machine("handed", 9.0), published=more)
    assert code == 1
    assert "580.00 on 3 machines." in output
    assert "once in 4." in output
    assert accept([*machine("handed"), *starts("handed", 9.0)], published=more)[0] == 0


def test_of_equal_cases_the_first_by_its_id_is_named() -> None:
    never = placed((0.0, 0.0, 0.0), {"other": (0.0,)})
    part = next(part for part in PARTS if part.name == "throttled")
    for order in ("ab", "ba"):
        assert JudgedPart(part=part, cases=dict.fromkeys(order, never)).worst == ("a", never)


@pytest.mark.parametrize(
    ("options", "code", "shown"),
    [
        ([], 2, f"Published are {MODEL}; choose one with --baseline."),
        (["--baseline", "generated"], 1, ""),
        (["--baseline", "another"], UsageError.exit_code, f"Allowed are {MODEL}"),
    ],
)
def test_a_model_is_chosen_by_a_part_of_its_name(accept: Accept, options: list[str], code: int, shown: str) -> None:
    gpus = tuple(replace(gpu, name="Another") for gpu in SLOW[0].rounds[0].environment.gpus)
    exit_code, output = accept(elsewhere(SLOW, gpus=gpus), *options)
    assert exit_code == code
    assert shown in output


def test_folders_without_results_are_refused(accept: Accept, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert session("accept", [str(tmp_path / "nothing")]) == UsageError.exit_code
    assert session("accept", [str(tmp_path / "empty")]) == StoreError.exit_code
    for folder in (tmp_path / "absent", tmp_path / "empty"):
        code, output = accept(machine("handed"), published=folder)
        assert code == UsageError.exit_code
        assert f"--published {folder}" in output
