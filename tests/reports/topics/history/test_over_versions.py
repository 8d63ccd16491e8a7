"""What changed since the version before: speed-ups of one configuration, software, and how runs were made."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.sets.version import Version, read_version
from reports.topics.history import page
from reports.topics.history.conditions import NOT_RECORDED, measurement, software, software_answer
from reports.topics.history.over_versions import again, changes, measured
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import make_case, make_result, write_results

OLD, NEW = "2026.9", "2026.11"
QUIET = (1.0, 1.001, 0.999)
NOISY = (1.0, 1.6, 0.7)


def ant(
    speedup: float, times_s: Sequence[float] = QUIET, *, machine_factor: float = 1.0, **changed: object
) -> list[CaseResult]:
    """Ant on one GPU and on two, which make ``speedup`` times the frames."""
    return [
        make_result(
            make_case("ant-weak", world_size=gpus, scaling="weak", num_envs_global=64 * gpus, device="cuda", **changed),  # type: ignore[arg-type]
            *(machine_factor * time_s * (2 / speedup if gpus == 2 else 1) for time_s in times_s),
        )
        for gpus in (1, 2)
    ]


def with_packages(found: Sequence[CaseResult], **packages: str) -> list[CaseResult]:
    settings = {f"versions.{name}": version for name, version in packages.items()}
    return [
        replace(
            result,
            rounds=tuple(
                replace(one, ranks=tuple(replace(rank, settings={**rank.settings, **settings}) for rank in one.ranks))
                for one in result.rounds
            ),
        )
        for result in found
    ]


def two_versions(folder: Path, before: Sequence[CaseResult], now: Sequence[CaseResult]) -> Version:
    older = read_version(write_results(before, folder / OLD), name=OLD)
    return read_version(write_results(now, folder / NEW), name=NEW, older=(older,))


@pytest.mark.parametrize(
    ("before", "now", "verdict", "said"),
    [
        (ant(1.5), ant(1.9), "higher", "Speed-ups changed since version 2026.9: of 1 comparison of 1 configuration"),
        (ant(1.9), ant(1.5), "lower", "on the same GPUs, 1 is lower."),
        (ant(1.9), ant(1.9), "unchanged", "No speed-up has surely changed since version 2026.9"),
        (ant(1.9, NOISY), ant(1.5), "within noise", "1 is within noise."),
        (ant(1.9, QUIET[:2]), ant(1.0), "too few runs", "1 has too few runs."),
    ],
)
def test_a_speed_up_measured_again_has_a_verdict(
    before: list[CaseResult], now: list[CaseResult], verdict: str, said: str, tmp_path: Path
) -> None:
    version = two_versions(tmp_path, before, now)
    (row,) = [line.split("\t") for line in page.speedups(version).text.splitlines() if "\t" in line][1:]
    assert row[0] == "Ant, 64 on each GPU, rsl_rl, 2 x Generated Accelerator"
    assert row[-1] == verdict
    assert said in page.opening(version).text


def test_a_slower_machine_changes_frames_per_second_and_no_speed_up(tmp_path: Path) -> None:
    version = two_versions(tmp_path, ant(1.8), ant(1.8, machine_factor=2.0))
    assert "unchanged" in page.speedups(version).text
    assert "the machines of 2026.11 make 0.50 to 0.50 times the frames per second" in page.frames(version).text


def test_other_settings_or_gpus_are_another_configuration(tmp_path: Path) -> None:
    for index, now in enumerate((ant(1.8, minibatch_size=1024), ant(1.8, num_steps_per_env=32))):
        version = two_versions(tmp_path / str(index), ant(1.8), now)
        assert "No speed-up of version 2026.9 was measured again on the same GPUs" in page.opening(version).text
        assert page.frames(version).text == ""
        assert "0 of 2 configurations are in more than one version" in page.over_all_versions(version).text


def test_more_iterations_and_another_seed_are_the_same_configuration(tmp_path: Path) -> None:
    version = two_versions(tmp_path, ant(1.8), ant(1.8, iterations=24, seed=7))
    found = measured([*version.older, version])
    assert len(changes(OLD, NEW, found)) == 1
    assert len(again(found)) == 1


def test_the_change_of_a_speed_up_is_wider_than_either(tmp_path: Path) -> None:
    version = two_versions(tmp_path, ant(1.5), ant(1.8))
    (change,) = changes(OLD, NEW, measured([*version.older, version]))
    assert change.value.value == pytest.approx(0.2)
    assert change.value.interval is not None
    low, high = change.value.interval
    for side in (change.before, change.now):
        interval = side.point.speedup.interval
        assert interval is not None
        assert high - low > (interval[1] - interval[0]) / side.point.speedup.value


def test_each_version_of_a_configuration_is_a_row(tmp_path: Path) -> None:
    later = with_packages(ant(1.8), isaaclab="3.1.0", newton="1.8.0")
    shown = page.over_all_versions(two_versions(tmp_path, ant(1.8, QUIET[:2]), later))
    configuration = "Ant, 64 on each GPU, rsl_rl, 2 x Generated Accelerator"
    assert f"{configuration}, in {OLD}: 1.80; {configuration}, in {NEW}: 1.80" in shown.text
    assert "Isaac Lab 3.1.0, Newton 1.8.0, torch 2.11.0" in shown.markup
    assert f"labscale {OLD} and {NEW}" in shown.markup


def test_what_only_one_version_measured_is_counted(tmp_path: Path) -> None:
    version = two_versions(tmp_path, ant(1.8), [*ant(1.8), *ant(1.6, rl_library="rl_games")])
    assert "1 configuration has points in one version only." in page.over_all_versions(version).text


def test_software_that_changed_is_named_and_what_one_side_did_not_record_is_not_known(tmp_path: Path) -> None:
    version = two_versions(tmp_path, ant(1.8), with_packages(ant(1.8), torch="2.12.0", nccl="2.29.0"))
    found = {each.name: each for each in software(version.older[0], version)}
    assert (found["torch"].before, found["torch"].now, found["torch"].has_changed) == ("2.11.0", "2.12.0", True)
    assert (found["NCCL"].before, found["NCCL"].has_changed) == (NOT_RECORDED, None)
    assert found["Isaac Lab"].has_changed is False
    assert "skrl" not in found
    assert software_answer(list(found.values())) == "Other software: torch (2.11.0, now 2.12.0)."
    assert page.opening(version).text.endswith("torch (2.11.0, now 2.12.0).")
    assert "https://github.com/pytorch/pytorch/releases" in page.stack(version).markup


def test_how_runs_were_made_is_compared(tmp_path: Path) -> None:
    version = two_versions(tmp_path, ant(1.8), ant(1.8, (*QUIET, *QUIET)))
    found = {each.name: (each.before, each.now) for each in measurement(version.older[0], version)}
    assert found["Runs of a configuration"] == ("3", "6")
    assert found["Runs measured in turns with others"] == ("0 of 6", "0 of 12")
    assert found["Commits of labscale"] == ("0123456789ab", "0123456789ab")
