"""The report of what has no speeds: marks, where everything is, what next, and nothing that compares ranks."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.export import command as export
from reports.figures.tables import tables
from reports.pages import data as downloads
from reports.pages import hardware
from reports.pages import what_worked as worked
from reports.sets.version import Version, read_version
from reports.site.contents import page_sources
from suite.records.folders import PLAN_FILE
from suite.records.worked import LEGEND
from suite.statistics.stopping_rule import CUT_OFF
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, smoke_results, write_results

SPEEDS = re.compile(r"frames per second|speed-?up|efficien|verdict|predict|ideal", re.IGNORECASE)


@pytest.fixture(scope="module")
def version(tmp_path_factory: pytest.TempPathFactory) -> Version:
    return read_version(write_results(smoke_results(), tmp_path_factory.mktemp("version")), name="v")


def test_only_pages_without_speeds_are_there_and_none_compares_ranks(version: Version) -> None:
    assert list(page_sources(version)) == ["index", "hardware", "data"]
    assert "worked.marks(version)" in page_sources(version)["index"]
    shown = [
        worked.opening(version), worked.marks(version),
        hardware.answer(version), hardware.machines(version), hardware.where(version),
        downloads.listing(version),
    ]  # fmt: skip
    texts = [*page_sources(version).values(), *(part.text for part in shown)]
    assert [word for text in texts for word in SPEEDS.findall(text)] == []


def test_it_opens_with_what_failed_and_gives_the_reason(version: Version) -> None:
    opening = worked.opening(version).text
    assert "[generated data, not measured]" in opening  # the machine's --host-label
    assert "1 of 8 runs did not complete" in opening
    assert "took 8 minutes." in opening
    lines = worked.marks(version).text.splitlines()
    assert "Isaac-Ant, rsl_rl\t1, 2\t?\t?\t✓\t✓" in lines
    assert "Isaac-Reorient-Cube-Shadow-Camera-Direct, rsl_rl\t1\t?\t?\t✗\t?" in lines
    (failed,) = (line for line in lines if line.startswith("✗"))
    assert "crashed: RuntimeError: generated failure of rank 1: out of shared memory (logs: raw/shadow" in failed
    assert f'<span role="img" aria-label="{LEGEND["failed"]}">✗</span>' in worked.marks(version).markup


@pytest.mark.parametrize(
    ("citation", "end"),
    [("", "contributed by Lab."), ('citation = "Results."', "contributed by Lab. To cite: Results.")],
)
def test_a_campaign_of_days_says_its_hours_and_a_contributor_ends_with_one_full_stop(
    tmp_path: Path, citation: str, end: str
) -> None:
    ran = make_result(make_case(device="cpu"), 0.5)
    long = replace(ran, rounds=(replace(ran.rounds[0], wall_time_s=297738.0),))
    write_results([long], tmp_path / "v" / "long")
    entry = f'[[set]]\nfolder = "long"\ncontributed_by = "Lab"\n{citation}\n'
    (tmp_path / "v" / "report.toml").write_text(entry)
    version = read_version(tmp_path / "v", name="v")
    assert "took 82.7 hours." in worked.opening(version).text
    assert worked.marks(version).text.splitlines()[0].endswith(end)


def test_a_campaign_that_was_cut_off_says_what_it_lacks(tmp_path: Path) -> None:
    ran = replace(make_result(make_case(device="cpu"), 0.5), ended_because=f"{CUT_OFF}: 1 of 2 rounds")
    folder = write_results([ran], tmp_path)
    (folder / PLAN_FILE).write_text(json.dumps({"configurations": {ran.case.case_id: 2, "s/b": 2, "s/c": 2}}))
    version = read_version(folder, name="v")
    assert version.sets[0].not_stored == ["s/b", "s/c"]
    opening = worked.opening(version).text
    assert opening.startswith("All that ran works on")
    assert "1 of 6 planned runs ended" in opening
    assert "2 of 3 planned configurations are not stored and 1 configuration lacks runs" in opening


def test_rewards_of_each_task_are_shown_where_training_was_long_enough_for_some(
    version: Version, tmp_path: Path
) -> None:
    assert worked.learned(version).markup.count("<figure") == 4  # of each series
    shown = worked.learned(version).text
    rows = [line.split("\t") for line in shown.splitlines() if line.startswith("Ant, 32")]
    assert [row[2:] for row in rows[:2]] == [["1", "32", "1", "3.62"], ["2", "64", "1", "3.62"]]
    assert "At the end: rsl_rl, 1 process, 32 environments: 3.62; rsl_rl, 2 processes, 64 environments: 3.62." in shown
    short = make_result(make_case(iterations=worked.MIN_LEARNED - 1), 0.5)
    assert worked.learned(read_version(write_results([short], tmp_path / "short"), name="v")).text == ""


def test_of_runs_that_shared_a_gpu_it_says_what_they_learned_and_no_time(tmp_path: Path) -> None:
    cases = [
        make_case(
            series, world_size=ranks, num_envs_global=size, scaling="weak", variant="learning", device="cuda",
            only_learning=True,
        )
        for series, ranks, size in (("ant-weak", 4, 4096), ("ant-weak", 1, 1024), ("ant-as-several", 1, 4096))
    ]  # fmt: skip
    crashed = failed_result(cases[0], outcome="crashed", reason="generated").rounds
    results = [make_result(case, 0.5, 0.5) for case in cases]
    results[0] = replace(results[0], rounds=(*results[0].rounds, replace(crashed[0], round=2)))
    version = read_version(write_results(results, tmp_path), name="v")
    rows = [line.split("\t") for line in worked.learned(version).text.splitlines() if "\t" in line]
    assert [row[1:] for row in rows[1:4]] == [
        ["rsl_rl", "1", "4,096", "2", "3.57"],
        ["rsl_rl", "1", "1,024", "2", "3.57"],
        ["rsl_rl", "4", "4,096", "2", "3.57"],
    ]
    assert worked.learned(version).markup.count("<figure") == 2
    assert "1 of 7 runs did not complete" in worked.opening(version).text
    assert "One after another" not in worked.opening(version).text
    assert (
        "Ant, 1,024 environments per process. At the end: rsl_rl, 1 process, 1,024 environments: "
        in worked.learned(version).text
    )


def test_a_series_of_several_sizes_is_named_by_them_and_each_curve_by_its_own(tmp_path: Path) -> None:
    results = [
        make_result(
            make_case("ant-as-several", num_envs_global=size, scaling="weak", device="cuda", only_learning=True), 0.5
        )
        for size in (2048, 16384)
    ]
    learned = worked.learned(read_version(write_results(results, tmp_path), name="v")).text
    assert "Ant, 2,048 to 16,384 environments per process. At the end: rsl_rl, 1 process, 2,048 environm" in learned
    assert "ant-as-several" not in learned


def test_gpus_on_which_nothing_completed_are_alike(tmp_path: Path) -> None:
    crashed = failed_result(make_case("ant-weak", device="cuda"), outcome="crashed", reason="generated")
    version = read_version(write_results([crashed], tmp_path), name="v")
    assert version.scaling == ()
    assert list(page_sources(version)) == ["index", "hardware", "data"]


def test_exports_have_its_frames_and_nothing_that_compares_ranks(version: Version) -> None:
    entries = json.loads(export.github_action_benchmark(version))
    assert len(entries) == 7
    assert all("a speed that means nothing: on a CPU" in entry["extra"] for entry in entries)
    assert not [over for over in tables(version)["figures"]["over"] if over.startswith("set=")]
