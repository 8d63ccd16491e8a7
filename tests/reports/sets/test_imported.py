"""Real bundles of Isaac Lab's schema 1.4, imported, damaged in every way that matters, and shown.

``golden/isaaclab_1.4/upstream-seed4?.json`` are what ``isaaclab benchmark training --rl_library rsl_rl --task
Isaac-Cartpole-Direct --num_envs 64 --max_iterations 5 --device cpu`` of Isaac Lab 3.0.0 wrote on two cores, 2026-11-21,
in a namespace whose host was named example-host. ``labscale-1x?.json`` are the bundles that labscale's own worker wrote
there beside a round of one and of two ranks (rl_games, 512 environments, 4 iterations). Nothing in them was edited.
"""

import json
import math
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.sets.imported.imported_set import efficiencies
from reports.sets.imported.reading import parse, read_run
from reports.sets.version import Version, read_version
from reports.site import pages
from reports.topics.data import downloads
from reports.topics.hardware import page as machines
from reports.topics.others import import_command
from reports.topics.others import imported_page as foreign
from reports.topics.tasks import curves_page as summary
from reports.verification import command as verify
from suite.errors import ForeignResultError, ReportError, ResultsDiffer
from suite.records.folders import BUNDLES
from tests.fixtures.results.generated_results import on_gpus, smoke_results, write_results

GOLDEN = Path(__file__).parents[2] / "golden" / "isaaclab_1.4"
FILES = sorted(GOLDEN.glob("*.json"))
ONE, TWO = GOLDEN / "labscale-1x1.json", GOLDEN / "labscale-1x2.json"
UPSTREAM = GOLDEN / "upstream-seed42.json"
Damage = Callable[[Any], None]


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    out = tmp_path / "imported"
    assert import_command.main([*map(str, FILES), "--out", str(out)]) == 0
    return out


def put(path: str, value: Any) -> Damage:
    """Set a field by its dotted name."""

    def change(stored: Any) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            stored = stored[parent]
        stored[name] = value

    return change


def drop(path: str) -> Damage:
    def change(stored: Any) -> None:
        *parents, name = path.split(".")
        for parent in parents:
            stored = stored[parent]
        del stored[name]

    return change


def refusal(path: Path, change: Damage) -> str:
    stored = json.loads(path.read_text())
    change(stored)
    with pytest.raises(ForeignResultError) as caught:
        parse(json.dumps(stored).encode(), Path("bundle.json"))
    return str(caught.value)


def test_real_bundles_are_read_and_zeros_that_stand_for_nothing_are_none() -> None:
    upstream, two = read_run(UPSTREAM).bundle, read_run(TWO).bundle
    assert (upstream.world_size, upstream.num_envs_per_rank, upstream.steps_per_env) == (1, 64, 16)
    assert (two.world_size, two.num_nodes, two.num_envs_per_rank) == (2, 1, 256)
    stored = json.loads(UPSTREAM.read_text())
    assert stored["resources"]["gpu_mem_gb"]["mean"] == stored["resources"]["devices"]["0"]["util_pct"]["mean"] == 0.0
    assert (upstream.gpu_mem_gb, upstream.gpu_util_pct) == (None, None)
    assert upstream.runtime.total_fps.mean == stored["runtime"]["total_fps"]["mean"]


def test_a_series_of_no_values_is_no_zero() -> None:
    stored = json.loads(UPSTREAM.read_text())
    stored["learning"]["reward"] = {"final_raw": 0.0, "final_ema": 0.0, "series_per_iter": []}
    stored["hardware"].update(cpu_count=0, ram_gb=0.0, cpu_name="unknown")
    bundle = parse(json.dumps(stored).encode(), UPSTREAM)
    assert (bundle.reward, bundle.hardware_text) == (None, None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (put("schema_version", "1.3"), "schema_version is '1.3'; allowed is '1.4'"),
        (put("schema_version", 1.4), "schema_version is 1.4; allowed is '1.4'"),
        (drop("schema_version"), "schema_version is 'missing'"),
        (drop("learning"), "learning is missing; allowed are bundles of `isaaclab benchmark training`"),
        (drop("runtime.iteration_time_s"), "runtime.iteration_time_s is missing; it must be there"),
        (drop("run.task"), "run.task is missing"),
        (put("runtime.iteration_time_s.mean", math.nan), "runtime.iteration_time_s.mean is nan"),
        (put("runtime.total_fps.mean", math.inf), "runtime.total_fps.mean is inf; it must be a finite number"),
        (put("runtime.total_fps.mean", 0), "runtime.total_fps.mean is 0; it must be greater than 0"),
        (put("runtime.iteration_time_s.mean", -0.3), "runtime.iteration_time_s.mean is -0.3; it must be greater than"),
        (put("runtime.iterations_completed", 0), "runtime.iterations_completed is 0; it must be greater than 0"),
        (put("runtime.iterations_completed", 5.0), "runtime.iterations_completed is 5.0; it must be a valid integer"),
        (put("run.num_envs", "64"), "run.num_envs is '64'; it must be a valid integer"),
        (put("run.framework", "ray"), "run.framework is 'ray'; it must be 'rsl_rl', 'rl_games', 'skrl' or 'sb3'"),
        (put("run.status", "fast"), "run.status is 'fast'; it must be 'completed', 'interrupted' or 'crashed'"),
        (put("runtime.speed", 7), "runtime.speed is 7; schema 1.4 has no such field"),
        (put("hardware.gpu_devices", [{"name": "GPU"}]), "hardware.gpu_devices.0.mem_gb is missing"),
        (put("success_rate", 1.5), "success_rate is 1.5; it must be less than or equal to 1"),
        (put("extra", {"note": [1]}), "extra.note is [1]; it must be a finite number, a text"),
        (put("learning.reward.series_per_iter", [0.1, None]), "learning.reward.series_per_iter.1 is None"),
        (put("runtime.iteration_time_s.peak", 0.1), "runtime.iteration_time_s.peak is 0.1; it must be at least"),
        (put("runtime.iteration_time_s.mean", 0.1), "runtime.total_wall_time_s is 1.73"),
        (put("runtime.total_fps", {"mean": 1e3, "std": 0.0}), "runtime.total_fps.mean is 1000.0; it must be at least"),
        (put("runtime.steps_per_iteration", 1000), "it must be a multiple of run.num_envs, 64"),
        (put("run.duration_s", 1.0), "run.duration_s is 1.0; from start to end it must be 6.47"),
        (put("run.start_time_utc", "yesterday"), "run.start_time_utc is 'yesterday'; it must be a date and time"),
        (put("run.end_time_utc", "2026-11-21T12:19:53"), "run.end_time_utc is '2026-11-21T12:19:53'"),
        (put("extra", {"world_size": 4}), "extra.world_size is 4; it must not be there unless extra.distributed"),
        (
            put("runtime.environment_step_timing.measurement_mode", "serialized_synchronized"),
            "simulation_step_time_s is missing; with measurement_mode serialized_synchronized it must be there",
        ),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)
def test_every_fault_of_a_file_is_named_by_field_with_what_is_allowed(change: Damage, said: str) -> None:
    text = refusal(UPSTREAM, change)
    assert text.startswith("bundle.json")
    assert said in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (drop("extra.world_size"), "extra.world_size is missing; where extra.distributed is true"),
        (put("extra.num_nodes", "1"), "extra.num_nodes is '1'"),
        (put("extra.world_size", 4), "extra.world_size is 4; it must be num_nodes times local_world_size, 2"),
        (put("extra.num_envs_per_rank", 512), "run.num_envs is 512; it must be num_envs_per_rank times world_size"),
        (put("extra.workload_scope", "rank0"), "the rates are of rank 0 alone"),
        (put("extra.measurement_scope", "all_ranks"), "it must be 'rank0_process'"),
    ],
    ids=lambda value: value[:50] if isinstance(value, str) else "",
)
def test_fields_of_ranks_must_agree(change: Damage, said: str) -> None:
    assert said in refusal(TWO, change)


def test_all_faults_are_told_at_once_and_fields_that_are_there_twice_too() -> None:
    def change(stored: Any) -> None:
        put("run.num_envs", 0)(stored)
        drop("versions.torch")(stored)

    assert "2 faults" in refusal(UPSTREAM, change)
    text = UPSTREAM.read_text().replace('"seed": 42,', '"seed": 42, "seed": 43,')
    with pytest.raises(ForeignResultError, match="the field seed is there twice"):
        parse(text.encode(), UPSTREAM)
    for content in (b"{", b"\xff", b"[]"):
        with pytest.raises(ForeignResultError, match=r"upstream-seed42\.json"):
            parse(content, UPSTREAM)


def test_importing_keeps_the_files_byte_by_byte_with_their_hashes(imported: Path) -> None:
    assert {path.name: path.read_bytes() for path in (imported / BUNDLES).iterdir()} == {
        path.name: path.read_bytes() for path in FILES
    }
    assert verify.main([str(imported)]) == 0


def test_what_cannot_be_imported_leaves_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, out = tmp_path / "bad.json", tmp_path / "out"
    bad.write_text(UPSTREAM.read_text().replace('"num_envs": 64', '"num_envs": -64'))
    arguments = [str(bad), str(tmp_path / "none.json"), str(ONE), "--out", str(out)]
    assert import_command.main(arguments) == ForeignResultError.exit_code
    said = capsys.readouterr().err
    assert "run.num_envs is -64; it must be greater than 0" in said
    assert "none.json cannot be read" in said
    assert not out.exists()
    copy = shutil.copy(ONE, tmp_path / "copy.json")
    assert import_command.main([str(ONE), str(copy), "--out", str(out)]) == ForeignResultError.exit_code
    assert "are the same run" in capsys.readouterr().err
    out.mkdir()
    (out / "thesis.txt").write_text("keep me")
    assert import_command.main([str(ONE), "--out", str(out)]) == ForeignResultError.exit_code
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]
    assert import_command.main([str(ONE), "--out", str(tmp_path / "one")]) == 0
    assert capsys.readouterr().out.startswith("1 run in 1 case, ")


def test_only_files_of_sensible_size_and_depth_are_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    named = [str(tmp_path / "pipe"), "/dev/zero", str(tmp_path / "deep.json"), str(tmp_path)]
    assert import_command.main([*named, "--out", str(tmp_path / "out")]) == ForeignResultError.exit_code
    pipe, zero, deep, folder, nothing = capsys.readouterr().err.splitlines()
    assert pipe.endswith("pipe cannot be read: Not a regular file. Check the path.")
    assert zero == "/dev/zero cannot be read: Not a regular file. Check the path."
    assert "deep.json is no JSON file: maximum recursion depth exceeded" in deep
    assert folder.endswith("cannot be read: Is a directory. Check the path.")
    assert nothing == "Nothing was imported."


def test_the_command_says_what_it_took_whose_clock_it_is_and_what_publishing_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_command.main([*map(str, FILES), "--out", str(tmp_path / "set")]) == 0
    said = capsys.readouterr().out
    assert "4 runs in 3 cases" in said
    assert "the clock of rank 0 alone" in said
    assert "example-host" in said
    assert "report.toml" in said


def test_runs_of_one_case_are_put_together_and_efficiencies_are_of_ranks_alone(imported: Path) -> None:
    (one,) = read_version(imported, name="v").foreign
    assert sorted(len(case.runs) for case in one.cases) == [1, 1, 2]
    (found,) = efficiencies(one.cases)
    times = [json.loads(path.read_text())["runtime"]["iteration_time_s"]["mean"] for path in (ONE, TWO)]
    assert (found.kind, found.base.world_size, found.case.world_size) == ("strong", 1, 2)
    assert found.efficiency == pytest.approx(times[0] / times[1] / 2)


@pytest.mark.parametrize(
    "change", [put("run.max_iterations", 40), put("versions.torch", "2.12.0"), put("run.status", "crashed")]
)
def test_no_efficiency_between_runs_that_differ_in_more_than_ranks(tmp_path: Path, change: Damage) -> None:
    stored = json.loads(ONE.read_text())
    change(stored)
    (tmp_path / "one.json").write_text(json.dumps(stored))
    assert import_command.main([str(tmp_path / "one.json"), str(TWO), "--out", str(tmp_path / "set")]) == 0
    version = read_version(tmp_path / "set", name="v")
    assert efficiencies(version.foreign[0].cases) == ()
    assert "there is no efficiency" in foreign.scaling(version).text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda folder: (folder / BUNDLES / ONE.name).unlink(), "missing"),
        (lambda folder: (folder / "SHA256SUMS").unlink(), "SHA256SUMS: the file is missing"),
        (lambda folder: (folder / BUNDLES / ONE.name).write_text(ONE.read_text() + "\n"), "its SHA-256"),
        (lambda folder: shutil.copy(UPSTREAM, folder / BUNDLES / "new.json"), "there twice"),
        (lambda folder: (folder / BUNDLES / ONE.name).write_text("{}"), "schema_version is 'missing'"),
        (lambda folder: shutil.rmtree(folder / BUNDLES) or (folder / BUNDLES).mkdir(), "expected a bundle in it"),
    ],
    ids=["missing file", "missing hashes", "altered file", "run twice", "no bundle", "empty"],
)
def test_verify_finds_what_was_done_to_a_set(
    imported: Path, capsys: pytest.CaptureFixture[str], change: Callable[[Path], object], said: str
) -> None:
    change(imported)
    assert verify.main([str(imported)]) == ResultsDiffer.exit_code
    assert said in capsys.readouterr().out


@pytest.fixture
def version(imported: Path, tmp_path: Path) -> Version:
    """Ours beside theirs, as a pull request would add it."""
    folder = tmp_path / "v"
    write_results(on_gpus(smoke_results()), folder / "ours")
    shutil.copytree(imported, folder / "upstream")
    (folder / "report.toml").write_text(
        '[[set]]\nfolder = "ours"\n[[set]]\nfolder = "upstream"\ntitle = "Two cores"\ncontributed_by = "Example Lab"\n'
    )
    return read_version(folder, name="v")


def test_imported_results_are_shown_as_theirs_and_enter_nothing_of_ours(version: Version) -> None:
    assert [one.name for one in version.sets] == [one.name for one in version.scaling] == ["ours"]
    assert "foreign" in pages.page_sources(version)
    shown = {page: getattr(foreign, page)(version).text for page in ("cases", "scaling", "runs", "places")}
    assert "by the clock of rank 0 alone" in foreign.statement().text
    assert "Measured and contributed by Example Lab" in shown["cases"]
    assert "0.343 to 0.347" in shown["cases"]
    assert "strong" in shown["scaling"]
    assert all(
        "Two cores, contributed by Example Lab" in shown[page] for page in ("cases", "scaling", "runs", "places")
    )
    (line,) = [line for line in shown["runs"].splitlines() if line.startswith(UPSTREAM.name)]
    assert line.split("\t")[8:10] == ["n/a", "n/a"]  # no GPU was seen, and 0 stands in the file
    assert "example-host" not in "".join(shown.values())
    alone = read_version(version.folder / "ours", name="v")
    assert summary.answers(version).text == summary.answers(alone).text.replace("This campaign", "ours")
    assert "Imported results: 1 set of other tools" in summary.opening(version).text
    files = downloads.files(version)
    assert files["All cases in one table"]["cases.csv"].count(b"\n") == 1 + len(smoke_results())
    theirs = files["Two cores, contributed by Example Lab"]
    assert theirs[f"upstream/{BUNDLES}/{ONE.name}"] == ONE.read_bytes()
    assert "upstream/SHA256SUMS" in theirs


def test_a_folder_of_imported_bundles_alone_has_a_report(imported: Path) -> None:
    version = read_version(imported, name="v")
    assert version.sets == ()
    assert "Nothing here was measured by labscale" in summary.opening(version).text
    assert machines.environments(version).text == summary.answers(version).text == ""


def test_cases_and_bundles_in_one_folder_are_refused(version: Version) -> None:
    shutil.copytree(version.folder / "upstream" / BUNDLES, version.folder / "ours" / BUNDLES)
    with pytest.raises(ReportError, match="never mixed"):
        read_version(version.folder, name="v")
