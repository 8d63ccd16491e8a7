"""The sentences above everything else that is shown of a series, on generated results and on the published version."""

import re
from pathlib import Path

from reports.sets.version import Version, read_version
from reports.site.pages import page_sources
from reports.site.topics import series_parts
from reports.topics.explore.model import points
from reports.topics.tasks import overview
from reports.topics.tasks.section import section
from reports.topics.tasks.series_answer import NOTHING, series_answer
from reports.topics.tuning import division_page
from suite.schema.record import CaseResult
from tests.fixtures.results import version_2026_12
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_case,
    make_result,
    on_gpus,
    sweep_results,
    write_results,
)


def said_of(version: Version, task: str, name: str) -> str:
    lines = [line for line in version.lines if line.series == name]
    return series_answer(overview.series_of(version, task)[name], lines)


def version_of(results: list[CaseResult], folder: Path) -> Version:
    return read_version(write_results(results, folder), name="v")


def test_every_published_series_has_an_answer_of_its_kind() -> None:
    version = committed_version()
    assert re.match(r"Give every GPU .* four H200s process \d", said_of(version, "Ant", "ant-weak"))
    assert re.match(r"With rsl_rl, 65,536 environments on 1 GPU make the most", said_of(version, "Ant", "ant-envs"))
    assert "times the frames of the settings as shipped" in said_of(version, "Cartpole", "cartpole-open")
    assert "an iteration takes" in said_of(version, "Cartpole", "cartpole-physics")
    alone = said_of(version, "Shadow Hand with camera", "control-shadow-render")
    assert re.match(r"One part of an iteration alone, .* s on 1 GPU.* and .* s on 4 GPUs", alone)


def test_a_pipeline_learns_and_is_no_single_part() -> None:
    newest = version_2026_12.version()
    pipeline = said_of(newest, "Cartpole", "cartpole-pipeline")
    assert pipeline.startswith("One process simulates while another one learns. An iteration takes 0.224 ")
    assert pipeline.endswith(" s on 2 GPUs.")
    control = said_of(newest, "Cartpole", "control-cartpole-collection")
    assert control.startswith("One part of an iteration alone, without training. It takes ")


def test_changes_other_than_tuned_settings_are_named_and_are_not_on_the_page_of_those() -> None:
    newest = version_2026_12.version()
    shared, deterministic = (said_of(newest, "Cartpole", f"cartpole-{name}") for name in ("shared", "deterministic"))
    assert shared.startswith("Compared with the settings as shipped, the frames per second are 2.30 ")
    assert "with trainings_per_gpu=4 (faster) and 1.60" in shared
    assert "with deterministic=True (too few runs), with rsl_rl on 1 GPU." in deterministic
    tuned = division_page.of_version(newest).text
    assert "cartpole-tuned" in tuned
    assert not [name for name in ("cartpole-shared", "cartpole-deterministic") if name in tuned]
    assert {point.settings for point in points(newest)} == {
        "as shipped",
        "tuned",
        "deterministic",
        "several trainings on a GPU",
        "other versions of packages",
    }
    releases = said_of(newest, "Cartpole", "cartpole-releases")
    assert releases.startswith("Compared with the pinned versions, the frames per second are 0.97 (")
    assert ", 1.04 (" in releases
    assert releases.endswith(" times with warp-lang==1.19.0 (within noise), with rsl_rl on 1 GPU.")


def test_a_sweep_says_which_size_makes_most_frames_beside_the_fewest(tmp_path: Path) -> None:
    version = version_of(on_gpus(sweep_results()), tmp_path)
    (part,) = version.series("ant-envs")
    most = max(part.rows, key=lambda row: row.total_fps or 0)
    said = said_of(version, "Ant", "ant-envs")
    assert f"{most.num_envs:,} environments on 1 GPU make the most frames, {most.total_fps:,.0f}" in said
    assert f"times those of {min(row.num_envs for row in part.rows):,} environments" in said


def test_of_a_series_in_which_nothing_completed_nothing_is_said(tmp_path: Path) -> None:
    failed = on_gpus([failed_result(make_case("ant-weak", world_size=2), outcome="crashed", reason="no memory")])
    version = version_of([*on_gpus([make_result(make_case(), 0.5)]), *failed], tmp_path)
    assert said_of(version, "Ant", "ant-weak") == NOTHING
    assert NOTHING in section(version, "Ant", "ant-weak", series_parts()).text


def test_a_task_of_which_only_a_part_ran_has_a_page_with_its_section(tmp_path: Path) -> None:
    part = make_case("ant-step", workload="environment_step")
    results = [make_result(part, 0.5), make_result(make_case("cartpole-strong"), 0.5)]
    version = version_of(on_gpus(results), tmp_path)
    assert overview.tasks(version) == ("Ant", "Cartpole")
    assert "Only single parts of Ant ran" in overview.opening(version, "Ant").text
    assert overview.scaling(version, "Ant").text == overview.sweeps(version, "Ant").text == ""
    page = page_sources(version)["task-ant"]
    assert "(series-ant-step)=" in page
    assert "stepped without training (ant-step)" in page
    shown = section(version, "Ant", "ant-step", series_parts()).text
    assert "It takes 0.500 s on 1 GPU (1 run)." in shown
    assert "This series is a single-part test" in shown


def test_one_name_of_two_tasks_is_a_section_of_each(tmp_path: Path) -> None:
    """Others may have a series of this name with a task of their own."""
    write_results(full_results(), tmp_path / "ours")
    mine = [make_result(make_case("ant-weak", task="Isaac-Mine", world_size=ranks), 0.5) for ranks in (1, 2)]
    write_results(on_gpus(mine), tmp_path / "mine")
    version = read_version(tmp_path, name="v")
    assert [part.name for part in overview.series_of(version, "Ant")["ant-weak"]] == ["ours"]
    assert [part.name for part in overview.series_of(version, "Mine")["ant-weak"]] == ["mine"]
    shown = section(version, "Mine", "ant-weak", series_parts()).text
    assert "scaling of Isaac-Mine with" in shown
    assert "scaling of Isaac-Ant with" not in shown
