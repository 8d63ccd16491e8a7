"""What the notes of version 2026.12 say is what results in git say."""

from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from reports.analysis.divisions import Gain, gains
from reports.analysis.rows import case_times, speedup_of
from reports.analysis.stack_parts import stack_pairs
from reports.sets.figures_file import FILE, read_figures, text
from reports.sets.version import ResultSet, Version, read_version
from reports.topics.determinism.model import pairs
from reports.topics.shared_gpu.model import groups
from reports.topics.trust.turns_check import TurnsCheck, turns_check
from suite.schema.record import RunRecord
from suite.statistics.intervals import Estimate
from suite.statistics.reduce import round_time_s, steady_part
from suite.statistics.turns_check import measured_both_ways
from tests.fixtures.results.committed_results import RESULTS as BEFORE

FOLDER = BEFORE.parent / "2026.12"
NOTES = " ".join((FOLDER / "NOTES.md").read_text(encoding="utf-8").split())
ANT = "ant-weak/rl_games-kitless-n2048-1x2"
PER_GPU = "cartpole-per-gpu/rl_games-kitless-n8192-1x2"
H100 = ("h100-turns", "h100-turns-2")
THIRD = ("h100-shadow", "h100-envs", "h100-open")  # the last on the fourth
TUNED_TASKS = ("Cartpole", "Ant")
SPLIT = "cartpole-strong/rl_games-kitless-n8192-1x2"


@cache
def version() -> Version:
    return read_version(FOLDER, name=FOLDER.name)


def of_seeds(one: ResultSet) -> list[Gain]:
    return sorted(gains(one.campaign.results), key=lambda found: found.case.series, reverse=True)


def seeds_of(one: ResultSet) -> set[int]:
    return {int(str(record.ranks[0].settings["seed"])) for record in runs_of(one)}


def set_of(folder: str) -> ResultSet:
    (found,) = (one for one in version().sets if one.folder.name == folder)
    return found


def h200s() -> ResultSet:
    return set_of("h200-x2")


def runs_of(one: ResultSet) -> list[RunRecord]:
    results = [*one.campaign.results, *one.campaign.twins, *one.copies]
    return [record for result in results for record in result.completed]


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
    results = [*h200s().campaign.results, *h200s().campaign.twins]
    runs = [record for result in results for record in result.completed]
    assert (len(results), {len(result.completed) for result in results}) == (8, {6})
    ended = [record for name in H100 for record in runs_of(set_of(name))]
    settled, settled_h100 = (sum(steady_part(record).flag is None for record in each) for each in (runs, ended))
    third = [record for name in THIRD[:2] for record in runs_of(set_of(name))]
    fourth = runs_of(set_of("h100-open"))
    settled_third, settled_fourth = (
        sum(steady_part(record).flag is None for record in each) for each in (third, fourth)
    )
    assert (
        f"{settled} of {len(runs)} had on the pair of H200s, {settled_h100} of {len(ended)} on the first two H100s"
        in NOTES
    )
    assert f"{settled_third} of {len(third)} on the third, {settled_fourth} of {len(fourth)} on the fourth" in NOTES
    assert {record.turns is not None and len(record.turns.beside) for record in runs} == {7}
    slowed = str(h200s().campaign.slowed_cores)
    assert "after 386 of 577 marked iterations" in slowed
    assert "after 386 of 577 marked iterations" in NOTES
    assert "22% longer" in slowed
    assert "the next iteration took 22 % longer" in NOTES


def test_the_noise_and_the_repeat_measurements() -> None:
    assert f"noise on the pair of H200s is {100 * (h200s().noise or 0):.1f} %" in NOTES
    campaign = h200s().campaign
    first = {result.case.series: median(map(round_time_s, result.completed)) for result in campaign.twins}
    for result in campaign.results:
        if result.case.series in first and result.case.world_size == 1:
            change = abs(first[result.case.series] / median(map(round_time_s, result.completed)) - 1)
            assert f"differ by {100 * change:.1f} %" in NOTES


def test_versions_commit_and_machine() -> None:
    record = h200s().campaign.results[0].completed[0]
    for spoken, name in (("Isaac Lab", "isaaclab"), ("Newton", "newton"), ("torch", "torch"), ("NCCL", "nccl")):
        assert f"{spoken} {record.ranks[0].settings[f'versions.{name}']}" in NOTES
    assert f"driver {record.environment.driver_version}" in NOTES
    assert f"commit {str(record.environment.git_commit)[:7]}" in NOTES
    assert record.environment.num_cpus == 32


def both_ways(name: str) -> TurnsCheck:
    one = set_of(name)
    found = turns_check(measured_both_ways((*one.campaign.results, *one.copies)))
    assert found is not None
    return found


def test_physx_in_turns_and_alone() -> None:
    first, second, third = map(both_ways, (*H100, "h200-turns"))
    for found, word, where in (
        (first, "less in turns on one H100", "one"),
        (second, "more on the other", "the other"),
        (third, "less on the H200", "the H200"),
    ):
        assert found.over_all.interval is not None, where
        low, high = (100 * (end - 1) for end in found.over_all.interval)
        assert f"{abs(100 * (found.over_all.value - 1)):.1f} % {word} ({low:.1f} to {high:.1f} %)" in NOTES
        assert (found.cost is None) == (found is not third)  # Newton in the same turns, and not alone
        assert [case.is_within_noise for case in found.cases] == [True] * 4
    assert max(first.over_all.value, third.over_all.value) < 1 < second.over_all.value
    assert f"a run in turns cost {third.cost:.2f} times the GPU-minutes of a run alone" in NOTES
    counts = [[(case.in_turns_rounds, case.alone_rounds) for case in found.cases] for found in (first, second, third)]
    assert [sorted(each) for each in counts] == [
        [(4, 3), (4, 3), (4, 3), (4, 4)],
        [(5, 5)] * 4,
        [(5, 5), (5, 5), (5, 5), (5, 6)],
    ]
    assert (
        "on the first four in turns and three alone (Cartpole with rsl_rl: four), on the second five and five" in NOTES
    )
    alone = [
        sum(case.alone_rounds for case in cases)
        for cases in zip(*(found.cases for found in (first, second, third)), strict=True)
    ]
    assert (min(alone), max(alone)) == (13, 14)
    assert "14 runs in turns and 13 or 14 alone" in NOTES
    ended = runs_of(set_of("h200-turns"))
    assert f"on the single H200 {sum(steady_part(record).flag is None for record in ended)} of {len(ended)}" in NOTES
    assert {f"commit {str(record.environment.git_commit)[:7]}, whose time was up" in NOTES for record in ended} == {
        True
    }


def test_physx_beside_newton() -> None:
    takes = {}
    for name in H100:
        for pair in stack_pairs(set_of(name).campaign):
            assert pair.ratio.over_base is not None
            takes[name, pair.case.case.series] = pair.ratio.over_base.mapped(lambda faster: 1 / faster)
            assert pair.case.case.rl_library == "rsl_rl"
            assert pair.noise is None
    ant, ant_again = (takes[name, "ant-turns"] for name in H100)
    assert f"{ant.value:.2f} times" in NOTES
    assert f"{ant.value:.2f}" == f"{ant_again.value:.2f}"
    assert f"({ends(ant)} on one, {ends(ant_again)} on the other)" in NOTES
    cartpole, cartpole_again = (takes[name, "cartpole-turns"] for name in H100)
    assert f"For Cartpole it is {times(cartpole)} and {times(cartpole_again)}." in NOTES


def times(found: Estimate) -> str:
    return f"{found.value:.2f} times ({ends(found)})"


def ends(found: Estimate) -> str:
    assert found.interval is not None
    low, high = sorted(found.interval)
    return f"{low:.2f} to {high:.2f}"


def test_more_environments_on_one_gpu() -> None:
    results = {result.case.case_id: result for result in set_of("h100-envs").campaign.results}
    assert {len(result.completed) for result in results.values()} == {6}
    for task, library, more, where in (
        ("ant", "rsl_rl", 8192, "{} times the frames of Ant"),
        ("cartpole", "rsl_rl", 8192, "{} times those of Cartpole"),
        ("ant", "rl_games", 8192, "With rl_games it is {} times"),
        ("cartpole", "rl_games", 4096, "With 4,096 in place of 1,024 it is {} times"),
    ):
        few, many = (results[f"{task}-envs/{library}-kitless-n{number}-1x1"] for number in (1024, more))
        work = many.case.frames_per_iteration / few.case.frames_per_iteration
        found = speedup_of(case_times(many).times_s, case_times(few).times_s, work=work)
        assert f"{where.format(f'{found.value:.2f}')} ({ends(found)})" in NOTES
        same_steps = many.case.optimiser_steps == few.case.optimiser_steps
        assert same_steps == (library == "rsl_rl")
    assert {record.turns is not None and len(record.turns.beside) for record in runs_of(set_of("h100-envs"))} == {7}
    assert set_of("h100-envs").noise is None


def test_tuned_settings() -> None:
    one = set_of("h100-open")
    ant, cartpole = sorted(gains(one.campaign.results), key=lambda found: found.case.series)
    assert {(found.rounds, found.closed_rounds) for found in (ant, cartpole)} == {(6, 6)}
    assert ant.gain is not None
    assert cartpole.gain is not None
    assert cartpole.sooner is not None
    assert f"one H100 processes {cartpole.gain.value:.2f} times the frames ({ends(cartpole.gain)})" in NOTES
    assert f"comes {cartpole.sooner.value:.2f} times as soon ({ends(cartpole.sooner)}), with one seed" in NOTES
    assert f"processes {ant.gain.value:.2f} times the frames ({ends(ant.gain)})" in NOTES
    assert ant.learning == "less"
    assert one.noise is None
    assert {record.turns is not None and len(record.turns.beside) for record in runs_of(one)} == {3}


def test_the_time_to_a_reward_over_seeds() -> None:
    one = set_of("h100-tuned-2")
    for found, task in zip(of_seeds(one), TUNED_TASKS, strict=True):
        assert found.seeds == (6, 6)
        assert found.reached == (6, 6)
        assert found.gain is not None
        assert found.sooner is not None
        assert found.target is not None
        assert found.time_to_target_s[0] is not None
        assert f"for {task} {found.sooner.value:.2f} times as soon ({ends(found.sooner)})" in NOTES
        assert f"{found.gain.value:.2f} times the frames of {task} ({ends(found.gain)})" in NOTES
        shipped_s, tuned_s = (each.value for each in found.time_to_target_s if each)
        words = (
            f"{task} has a reward of {found.target:.3g} after {shipped_s:.0f} s as shipped and {tuned_s:.0f} s tuned"
        )
        assert words in NOTES
    settled = sum(steady_part(record).flag is None for record in runs_of(one))
    assert f"On the sixth, {settled} of {len(runs_of(one))} had settled" in NOTES
    assert seeds_of(one) == set(range(5, 11))


def test_the_machine_before_agrees_on_the_time_to_a_reward() -> None:
    one = set_of("h100-tuned")
    for found, task in zip(of_seeds(one), TUNED_TASKS, strict=True):
        assert found.seeds == found.reached == (4, 4)
        assert found.sooner is not None
        assert f"{found.sooner.value:.2f} times ({ends(found.sooner)}) for {task}" in NOTES
    settled = sum(steady_part(record).flag is None for record in runs_of(one))
    assert f"fourth, and {settled} of {len(runs_of(one))} on the fifth" in NOTES
    assert seeds_of(one) == {1, 2, 3, 4}


@pytest.mark.parametrize("folder", ["h100-tuned", "h100-tuned-2"])
def test_runs_over_seeds_were_one_block_of_turns(folder: str) -> None:
    one = set_of(folder)
    assert one.noise is None
    assert {record.turns is not None and len(record.turns.beside) for record in runs_of(one)} == {3}


def test_the_shadow_hand_on_one_gpu() -> None:
    found = row(FOLDER, "h100-shadow", "shadow-horizontal/rsl_rl-kitless-n512-1x1")
    low, high = found["interval_s"]
    assert f"processes {found['frames_per_s']:,.0f} frames/s on the third H100" in NOTES
    assert f"An iteration takes {found['seconds_per_iteration']:.2f} s ({low:.2f} to {high:.2f})" in NOTES
    assert (found["processes"], found["settled"]) == (6, 6)


def test_the_shadow_hand_on_two_gpus() -> None:
    cases = [f"shadow-horizontal/rsl_rl-kitless-{size}" for size in ("n512-1x1", "n1024-1x2")]
    one, two = (row(FOLDER, "h100-x2-shadow", case_id) for case_id in cases)
    low, high = two["speedup_interval"]
    assert (
        f"a pair of H100s processes {two['speedup']:.2f} times the frames of one** ({low:.2f} to {high:.2f})" in NOTES
    )
    efficiency = percent(two["efficiency"], two["efficiency_interval"])
    assert f"The efficiency is {efficiency}, over six runs of each, of which {settled_of(one, two)} had" in NOTES
    assert f"on the pair of H100s {settled_of(one, two)}," in NOTES
    assert (one["processes"], two["processes"], two["verdict"]) == (6, 6, "scales")
    low, high = one["interval_s"]
    takes = f"an iteration takes {one['seconds_per_iteration']:.2f} s ({low:.2f} to {high:.2f}) there"
    assert f"On one of the pair it is {one['frames_per_s']:,.0f} frames/s: {takes}" in NOTES
    before = row(BEFORE, "h200-x2-shadow", cases[1])
    was = percent(before["efficiency"], before["efficiency_interval"])
    assert f"Version 2026.11 gave {was}, with three runs on two H200s" in NOTES
    assert before["processes"] == 3
    runs = runs_of(set_of("h100-x2-shadow"))
    assert {record.turns is not None and len(record.turns.beside) for record in runs} == {1}
    assert {record.environment.num_cpus for record in runs} == {32}


def test_deterministic_settings() -> None:
    (pair,) = pairs(set_of("h100-deterministic").campaign.results)
    assert pair.longer is not None
    assert f"make an iteration of Cartpole {pair.longer.value:.2f} times as long** ({ends(pair.longer)})" in NOTES
    assert [(each.runs, each.are_equal) for each in pair.repeats if each] == [(3, True), (3, True)]
    assert "Three runs of one seed are equal bit for bit, with these settings and as shipped" in NOTES


def test_several_trainings_on_one_gpu() -> None:
    (group,) = groups(set_of("h100-shared").campaign.results)
    _, two, four = group.numbers
    assert (two.trainings, four.trainings) == (2, 4)
    assert two.over_one is not None
    assert four.over_one is not None
    assert f"process {two.over_one.value:.2f} times the frames of one** ({ends(two.over_one)})" in NOTES
    assert f"and four {times(four.over_one)}" in NOTES
    each_of_two, each_of_four = (share(each.each_over_alone) for each in (two, four))
    assert f"Each of two runs at {each_of_two} of the speed of one alone, and each of four at {each_of_four}" in NOTES
    assert {each.mps for each in group.numbers} == {False}


def share(found: Estimate | None) -> str:
    assert found is not None
    assert found.interval is not None
    low, high = found.interval
    return f"{100 * found.value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def test_the_seventh_machine() -> None:
    runs = [record for name in ("h100-deterministic", "h100-shared") for record in runs_of(set_of(name))]
    settled = sum(steady_part(record).flag is None for record in runs)
    assert f"on the seventh {settled} of {len(runs)}," in NOTES
    assert {str(record.environment.git_commit)[:7] for record in runs} == {"1bf006f"}
    assert {len(record.turns.beside) if record.turns else None for record in runs} == {1, 2}


def settled_of(*cases: Any) -> str:
    return f"{sum(case['settled'] for case in cases)} of {sum(case['processes'] for case in cases)}"


def test_versions_of_the_h100s() -> None:
    for name in (*H100, *THIRD):
        record = set_of(name).campaign.results[0].completed[0]
        found = record.ranks[0].settings
        assert f"Newton {found['versions.newton']}, rl-games {found['versions.rl-games']}" in NOTES
        assert f"rsl-rl {found['versions.rsl-rl-lib']}" in NOTES
        assert f"commit {str(record.environment.git_commit)[:7]}, driver {record.environment.driver_version}" in NOTES
        assert record.environment.num_cpus == 16
