"""The page of a GPU model."""

import re
from dataclasses import replace
from pathlib import Path

from reports.analysis.analysed_set import Campaign
from reports.sets.version import read_version
from reports.site.contents import page_sources
from reports.topics.hardware import gpu_page
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import full_results, write_results


def test_each_model_has_its_own_machines_and_nothing_of_others() -> None:
    version = committed_version()
    assert gpu_page.gpu_models(version) == (gpu_page.CPUS, "NVIDIA H100 80GB HBM3", "NVIDIA H200")
    part = gpu_page.of_model(version, "NVIDIA H100 80GB HBM3")
    assert 0 < len(part.sets) < len(version.sets)
    assert "with up to 2 GPUs" in gpu_page.opening(part, "NVIDIA H100 80GB HBM3").text
    rows = [row.split("\t") for row in gpu_page.machines(part, "NVIDIA H100 80GB HBM3").text.splitlines()[1:]]
    assert rows
    assert all("H100" in row[0] for row in rows)
    assert [row[1] for row in rows] == sorted(row[1] for row in rows)  # oldest first
    on_cpus = gpu_page.of_model(version, gpu_page.CPUS)
    assert "without GPUs: " in gpu_page.opening(on_cpus, gpu_page.CPUS).text
    assert "has a speed that says something" in gpu_page.most(on_cpus, gpu_page.CPUS, "tuned").text


def test_each_machine_has_an_address_with_its_power_its_cores_and_what_env_check_said() -> None:
    version = gpu_page.of_model(committed_version(), "NVIDIA H200")
    shown = gpu_page.machine_by_machine(version, "NVIDIA H200")
    listed = gpu_page.machines(version, "NVIDIA H200")
    found = gpu_page.machines_of(version, "NVIDIA H200")
    assert len(found) > 10
    for machine in found:
        assert f'href="#{machine.slug}"' in listed.markup
        assert shown.markup.count(f'<details class="fold" id="{machine.slug}">') == 1
    of_one = shown.markup.partition('id="h200x4-20261122-1427"')[2].partition("</details>")[0]
    for said in ("Power of all GPUs in W", "Core probe in µs", "What env_check said", "core_speed"):
        assert said in of_one
    assert len(re.findall('role="region" aria-label="([^"]*)"', of_one)) == len(
        set(re.findall('role="region" aria-label="([^"]*)"', of_one))
    )
    (l_set,) = (one for one in version.sets if one.name == "h200-x4-rsl")
    power_w = l_set.campaign.inside["ant-weak/rsl_rl-kitless-n4096-1x4"].power_w
    assert power_w is not None
    assert f"<td>{power_w.median:,.0f}</td>" in of_one


def test_the_most_frames_are_of_the_quickest_case_of_each_task_and_number_of_gpus(tmp_path: Path) -> None:
    results = full_results()
    version = read_version(write_results(results, tmp_path), name="v")
    (model,) = gpu_page.gpu_models(version)
    rows = [row.split("\t") for row in gpu_page.most(version, model, "as shipped").text.splitlines()[1:]]
    assert [(row[0], row[1]) for row in rows] == [
        (task, str(gpus)) for task in ("Ant", "Cartpole") for gpus in (1, 2, 4, 8)
    ]
    assert all(row[3].startswith("rsl_rl, ") for row in rows)  # the generated rl_games is slower everywhere
    assert "hardware-generated-accelerator" in page_sources(version)
    nothing = replace(version, sets=())
    assert gpu_page.gpu_models(nothing) == ()


def test_older_versions_with_the_model_are_named_with_the_way_there(tmp_path: Path) -> None:
    older = committed_version()
    newer = read_version(write_results(full_results(), tmp_path), name="v")
    both = replace(newer, older=(older,))
    said = gpu_page.in_older_versions(both, "NVIDIA H100 80GB HBM3")
    assert "Version 2026.11\t2\tAnt\t" in said.text
    assert '<a href="../2026.11/hardware-nvidia-h100-80gb-hbm3.html">' in said.markup
    assert gpu_page.in_older_versions(both, gpu_page.CPUS).text.startswith(
        "Older version\tMost ranks\tTasks\tCompleted runs"
    )
    assert gpu_page.in_older_versions(both, "NVIDIA L40S").text == ""
    assert gpu_page.in_older_versions(older, "NVIDIA H200").text == ""


def test_runs_of_another_model_in_the_same_set_of_an_older_version_are_not_counted() -> None:
    older = committed_version()
    one, other = (each.campaign for each in older.sets if each.name in {"cpu-upstream", "h100-memory"})
    both = Campaign.from_results([*one.results, *other.results])
    mixed = replace(older, sets=(replace(older.sets[0], campaign=both),))
    models = gpu_page.gpu_models(mixed)
    runs = [gpu_page.before(replace(older, older=(mixed,)), model)[older.name].runs for model in models]
    assert sorted(runs) == sorted((len(one.completed), len(other.completed)))


def test_what_is_tuned_is_never_the_most_as_shipped() -> None:
    """Tuned Ant makes six times the frames as shipped, so one maximum of both would compare settings, not machines."""
    version = committed_version()
    shipped, tuned = (gpu_page.best_of(version, settings) for settings in gpu_page.TRAINED)
    assert {result.case.division for _, result, _ in shipped.values()} == {"closed"}
    assert {result.case.division for _, result, _ in tuned.values()} == {"open"}
