"""The command ``accept`` on generated machines: its answers, the part it names, its text, and what it refuses."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pytest

from reports.accept.command import main
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
    machine,
    with_settings,
    with_throttling,
    write_published,
)
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, write_results

GOLDEN: Final = ROOT / "tests" / "golden" / "accept.txt"
SHARED: Final = {"beside": "yes", "unknown": "unknown"}  # set -> whether it shared its machine
COLUMNS: Final = ("iteration_time_s", "environment_step_time_s", "learning_time_s", "all_reduce_time_s")

type Accept = Callable[..., tuple[int, str]]


@pytest.fixture
def accept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Accept:
    """Judge results among the published machines: the exit code, and all that was said."""

    def run(results: Sequence[CaseResult], *options: str, published: Path | None = None) -> tuple[int, str]:
        shutil.rmtree(tmp_path / "results", ignore_errors=True)
        folder = write_results(results, tmp_path / "results")
        published = published or write_published(tmp_path / "published")
        code = main([str(folder), "--published", str(published), *options])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out + said.err

    return run


def test_a_machine_twice_as_slow_is_slow_and_the_text_is_this(accept: Accept) -> None:
    code, said = accept(machine("handed", 2.5))
    lines = [line.rstrip() for line in said.splitlines()]
    assert (code, "\n".join(lines) + "\n") == (1, GOLDEN.read_text())


@pytest.mark.parametrize(("times", "word"), [(0.8, "fast"), (1.0, "within"), (1.25, "within")])
def test_a_machine_in_the_range_or_before_it_is_accepted(accept: Accept, times: float, word: str) -> None:
    code, said = accept(machine("handed", times))
    assert code == 0
    assert "\nAccepted: " in said
    rows = [line for line in said.splitlines() if line.strip().startswith(CASES[0].series)]
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
    code, said = accept(machine("handed", columns=columns))
    assert code == 1
    assert named in said


def test_a_throttled_gpu_is_named(accept: Accept, tmp_path: Path) -> None:
    published = write_published(tmp_path / "watched", throttled=0.0)
    slow = machine("handed", columns=dict.fromkeys(COLUMNS, 2.0))
    code, said = accept(with_throttling(slow, 0.4), published=published)
    assert code == 1
    assert "The slow part is the GPU (throttled 40 %, elsewhere at most 0); " in said


def test_without_a_probe_the_core_is_not_ruled_out(accept: Accept) -> None:
    def unprobed(record: RunRecord) -> RunRecord:
        ranks = (
            replace(rank, samples={name: column for name, column in rank.samples.items() if "probe" not in name})
            for rank in record.ranks
        )
        return replace(record, ranks=tuple(ranks))

    code, said = accept(changed(machine("handed", 2.5), unprobed))
    assert code == 1
    assert "The slow part is likely the GPU, its driver or a CPU core; " in said
    assert "core probe" not in said


def test_a_driver_that_no_published_machine_has_is_named(accept: Accept) -> None:
    slow = machine("handed", 2.5)
    other = changed(
        slow, lambda record: replace(record, environment=replace(record.environment, driver_version="999.1"))
    )
    assert "no published machine has its driver 999.1." in accept(other)[1]
    assert "Driver: 999.1 here; published: 580.00 on 3 machines." in accept(other)[1]
    assert "has its driver" not in accept(slow)[1]


def slow_start(record: RunRecord) -> RunRecord:
    return replace(record, ranks=tuple(replace(rank, phases_s={"imports": 40.0}) for rank in record.ranks))


def test_a_slow_disk_is_told_though_it_is_in_no_iteration(accept: Accept) -> None:
    code, said = accept(changed(machine("handed"), slow_start))
    assert code == 0
    assert "Slower than on every comparable machine: the disk (imports 40 s, elsewhere at most 4)." in said


def test_starts_of_runs_in_turns_are_not_compared_with_those_of_runs_alone(accept: Accept) -> None:
    def in_turns(record: RunRecord) -> RunRecord:
        return replace(slow_start(record), turns=TurnsTaken(beside=(), turns=3, turn_s=2.5))

    code, said = accept(changed(machine("handed"), in_turns))
    assert code == 0
    assert "disk" not in said


def test_another_number_of_runs_versions_or_work_leaves_a_case_open(accept: Accept) -> None:
    two = [replace(result, rounds=result.rounds[:2]) for result in machine("handed", 2.5)]
    code, said = accept(two)
    assert code == 2
    assert "open: 2 runs completed, and 3 are needed" in said
    code, said = accept(with_settings(machine("handed", 2.5), **{"versions.torch": "2.12.0"}))
    assert code == 2
    assert "torch 2.11.0 there" in said
    assert accept(with_settings(machine("handed", 2.5), **{"versions.python": "3.13.0", "versions.own": "1"}))[0] == 1
    case = replace(CASES[0], minibatch_size=64)
    larger = make_result(case, 1.0, 1.0, 1.0)
    code, said = accept([larger])
    assert code == 2
    assert "no other published machine ran it" in said


def test_a_case_of_which_no_run_completed_is_not_accepted(accept: Accept) -> None:
    case = make_case("cartpole-strong", device="cuda")
    failed = failed_result(case, outcome="crashed", reason="RuntimeError: generated")
    code, said = accept([*machine("handed"), failed])
    assert code == 2
    assert f"Cannot say: no run completed of {case.case_id}." in said
    assert accept([*machine("handed", 2.5), failed])[0] == 1
    code, said = accept([failed])
    assert code == 2
    assert f"Cannot say: no run completed of {case.case_id}." in said


def test_the_machine_itself_and_runs_beside_others_are_not_among_the_published(accept: Accept, tmp_path: Path) -> None:
    published = write_published(tmp_path / "more")
    write_results(machine("handed", 9.0), published / "2026.11" / "handed")
    write_results(machine("host X", 9.0), published / "2026.11" / "beside")
    write_results(machine("host Y", 9.0), published / "2026.11" / "unknown")
    manifest = published / "2026.11" / "report.toml"
    stated = "".join(f'[[set]]\nfolder = "{name}"\nshared_machine = "{word}"\n' for name, word in SHARED.items())
    manifest.write_text(manifest.read_text() + stated)
    code, said = accept(machine("handed", 9.0), published=published)
    assert code == 1
    assert "580.00 on 3 machines." in said
    assert "once in 4." in said


def starts(label: str, times: float) -> list[CaseResult]:
    """The cases of a machine as warm starts, each beside a cold one."""

    def of(result: CaseResult, cache: Literal["kept", "empty"]) -> CaseResult:
        old = result.case
        case = replace(old, case_id=f"{old.case_id}-{cache}", series=f"{old.series}-start-up", kernel_cache=cache)
        return replace(result, case=case, rounds=tuple(replace(record, case=case) for record in result.rounds))

    return [start for result in machine(label, times) for start in (of(result, "kept"), of(result, "empty"))]


def test_warm_and_cold_starts_do_not_say_how_fast_a_machine_is(accept: Accept, tmp_path: Path) -> None:
    published = write_published(tmp_path / "more")
    write_results(starts("host Z", 9.0), published / "2026.11" / "starts")
    code, said = accept(machine("handed", 2.5), published=published)
    assert code == 1
    assert "580.00 on 3 machines." in said
    assert accept([*machine("handed"), *starts("handed", 9.0)], published=published)[0] == 0
    code, said = accept(starts("handed", 9.0))
    assert code == 2


def test_of_equal_cases_the_first_by_its_id_is_named() -> None:
    never = placed((0.0, 0.0, 0.0), {"other": (0.0,)})
    part = next(part for part in PARTS if part.name == "throttled")
    for order in ("ab", "ba"):
        assert JudgedPart(part=part, cases=dict.fromkeys(order, never)).worst == ("a", never)


def test_a_model_is_chosen_by_a_part_of_its_name(accept: Accept) -> None:
    def on(model: str) -> list[CaseResult]:
        def moved(record: RunRecord) -> RunRecord:
            gpus = tuple(replace(gpu, name=model) for gpu in record.environment.gpus)
            return replace(record, environment=replace(record.environment, gpus=gpus))

        return changed(machine("handed", 2.5), moved)

    code, said = accept(on("Another"))
    assert code == 2
    assert f"Published are {MODEL}; choose one with --baseline." in said
    assert accept(on("Another"), "--baseline", "generated")[0] == 1
    code, said = accept(on("Another"), "--baseline", "another")
    assert code == UsageError.exit_code
    assert f"Allowed are {MODEL}" in said


def test_bad_input_is_refused_in_a_sentence(accept: Accept, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "nothing")]) == UsageError.exit_code
    assert "where there is nothing" in capsys.readouterr().err
    code, said = accept([make_result(make_case("cartpole-strong"), 1.0)])
    assert code == UsageError.exit_code
    assert "have no run on a GPU" in said
    shutil.rmtree(tmp_path / "results")
    for folder in (tmp_path / "absent", tmp_path / "results"):
        code, said = accept(machine("handed"), published=folder)
        assert code == UsageError.exit_code
        assert f"--published {folder} has no version with runs on GPUs." in said
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == StoreError.exit_code
    assert "contains no results" in capsys.readouterr().err
