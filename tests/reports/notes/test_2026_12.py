"""What the notes of version 2026.12 say is what results in git say."""

from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

from reports.sets.figures_file import FILE, read_figures, text
from reports.sets.version import ResultSet, Version, read_version
from suite.statistics.reduce import round_time_s, steady_part
from tests.fixtures.results.committed_results import RESULTS as BEFORE

FOLDER = BEFORE.parent / "2026.12"
NOTES = " ".join((FOLDER / "NOTES.md").read_text(encoding="utf-8").split())
ANT = "ant-weak/rl_games-kitless-n2048-1x2"
PER_GPU = "cartpole-per-gpu/rl_games-kitless-n8192-1x2"
SPLIT = "cartpole-strong/rl_games-kitless-n8192-1x2"


@cache
def version() -> Version:
    return read_version(FOLDER, name=FOLDER.name)


def only_set() -> ResultSet:
    (found,) = version().sets
    return found


def row(folder: Path, name: str, case_id: str) -> Any:
    return read_figures(folder)[name]["cases"][case_id]


def percent(value: float, interval: list[float]) -> str:
    low, high = interval
    return f"{100 * value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def test_the_figures_in_git_are_those_of_the_report() -> None:
    assert (FOLDER / FILE).read_text(encoding="utf-8") == text(version())


def test_two_gpus_against_one() -> None:
    ant, per_gpu, split = (row(FOLDER, "h200-x2", case_id) for case_id in (ANT, PER_GPU, SPLIT))
    assert f"The efficiency of Ant is {percent(ant['efficiency'], ant['efficiency_interval'])}" in NOTES
    assert f"that of Cartpole {percent(per_gpu['efficiency'], per_gpu['efficiency_interval'])}" in NOTES
    assert f"process {per_gpu['speedup']:.1f} to {ant['speedup']:.1f} times the frames of one" in NOTES
    low, high = split["speedup_interval"]
    assert f"they process {split['speedup']:.2f} times the frames of one** ({low:.2f} to {high:.2f})" in NOTES
    assert f"an efficiency of {percent(split['efficiency'], split['efficiency_interval'])}" in NOTES
    assert (ant["verdict"], per_gpu["verdict"], split["verdict"]) == ("inconclusive", "inconclusive", "limited")


def test_ranges_are_narrower_than_before() -> None:
    times = []
    for name, case_id in (("h200-x4-full", ANT), ("h200-x2-per-gpu", PER_GPU)):
        old, new = row(BEFORE, name, case_id), row(FOLDER, "h200-x2", case_id)
        (low, high), (inner_low, inner_high) = old["efficiency_interval"], new["efficiency_interval"]
        assert low < inner_low < inner_high < high
        assert (old["processes"], new["processes"]) == (3, 6)
        shown = percent(old["efficiency"], old["efficiency_interval"]).split(" % ")
        assert f"{shown[0]} % for " in NOTES
        assert shown[1] in NOTES
        times.append((high - low) / (inner_high - inner_low))
    assert f"The new ranges are {times[0]:.1f} and {times[1]:.1f} times narrower" in NOTES


def test_settled_runs_and_cores() -> None:
    results = [*only_set().campaign.results, *only_set().campaign.twins]
    runs = [record for result in results for record in result.completed]
    assert (len(results), {len(result.completed) for result in results}) == (8, {6})
    settled = sum(steady_part(record).flag is None for record in runs)
    assert f"{settled} of {len(runs)} had" in NOTES
    assert {record.turns is not None and len(record.turns.beside) for record in runs} == {7}
    slowed = str(only_set().campaign.slowed_cores)
    assert "after 386 of 577 marked iterations" in slowed
    assert "after 386 of 577 marked iterations" in NOTES
    assert "22% longer" in slowed
    assert "the next iteration took 22 % longer" in NOTES


def test_the_noise_and_the_repeat_measurements() -> None:
    assert f"noise is {100 * (only_set().noise or 0):.1f} %" in NOTES
    campaign = only_set().campaign
    first = {result.case.series: median(map(round_time_s, result.completed)) for result in campaign.twins}
    for result in campaign.results:
        if result.case.series in first and result.case.world_size == 1:
            change = abs(first[result.case.series] / median(map(round_time_s, result.completed)) - 1)
            assert f"differ by {100 * change:.1f} %" in NOTES


def test_versions_commit_and_machine() -> None:
    record = only_set().campaign.results[0].completed[0]
    for spoken, name in (("Isaac Lab", "isaaclab"), ("Newton", "newton"), ("torch", "torch"), ("NCCL", "nccl")):
        assert f"{spoken} {record.ranks[0].settings[f'versions.{name}']}" in NOTES
    assert f"driver {record.environment.driver_version}" in NOTES
    assert f"commit {str(record.environment.git_commit)[:7]}" in NOTES
    assert record.environment.num_cpus == 32
