"""What the notes of version 2026.12 say is what results in git say: several GPUs, turns, PhysX, machines."""

from statistics import median

from reports.analysis.stack_parts import stack_pairs
from reports.sets.figures_file import FILE, text
from reports.sets.version import ResultSet
from reports.topics.trust.turns_check import TurnsCheck, mean_ratio, pooled, turns_check
from suite.statistics.intervals import Estimate
from suite.statistics.reduce import round_time_s, steady_part
from suite.statistics.turns_check import BothWays, measured_both_ways
from tests.fixtures.results.committed_results import RESULTS as BEFORE
from tests.fixtures.results.version_2026_12 import (
    FOLDER,
    NOTES,
    ends,
    percent,
    row,
    runs_of,
    set_of,
    settled_of,
    times,
    version,
)

ANT = "ant-weak/rl_games-kitless-n2048-1x2"
PER_GPU = "cartpole-per-gpu/rl_games-kitless-n8192-1x2"
H100 = ("h100-turns", "h100-turns-2")
IN_TURNS = (*H100, "h200-turns", "h200-turns-2")
THIRD = ("h100-shadow", "h100-envs", "h100-open")  # the last on the fourth
SPLIT = "cartpole-strong/rl_games-kitless-n8192-1x2"


def h200s() -> ResultSet:
    return set_of("h200-x2")


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


def test_four_gpus_against_one() -> None:
    one = set_of("h200-x4")
    runs = runs_of(one)
    assert {record.turns is not None and len(record.turns.beside) for record in runs} == {5}
    assert {(record.environment.num_cpus, str(record.environment.git_commit)[:7]) for record in runs} == {
        (64, "655d21f")
    }
    ids = [f"ant-weak/rl_games-kitless-n{1024 * gpus}-1x{gpus}" for gpus in (1, 2, 4)]
    ids += [f"cartpole-strong/rl_games-kitless-n8192-1x{gpus}" for gpus in (1, 2, 4)]
    rows = [row(FOLDER, "h200-x4", case_id) for case_id in ids]
    assert [each["processes"] for each in rows] == [6] * 6
    _, ant_2, ant_4, _, split_2, split_4 = rows
    for each in (ant_2, ant_4, split_2, split_4):
        low, high = each["speedup_interval"]
        assert f"{each['speedup']:.2f}" in NOTES
        assert f"({low:.2f} to {high:.2f})" in NOTES
    for each in (ant_2, ant_4, split_4):
        assert f"{percent(each['efficiency'], each['efficiency_interval'])}" in NOTES
    assert (ant_4["verdict"], split_4["verdict"]) == ("inconclusive", "limited")
    settled = sum(steady_part(record).flag is None for record in runs)
    assert f"{settled} of {len(runs)} had on the four H200s," in NOTES
    for case_id in (ids[2], ids[5]):
        before = row(BEFORE, "h200-x4-full", case_id)
        assert percent(before["efficiency"], before["efficiency_interval"]).partition(" % ")[0] in NOTES
        assert before["processes"] == 3


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
    assert f"{settled} of {len(runs)} on the first pair of H200s, " in NOTES
    assert f"of H200s, {settled_h100} of {len(ended)} on the first two H100s" in NOTES
    assert f"{settled_third} of {len(third)} on the third, {settled_fourth} of {len(fourth)} on the fourth" in NOTES
    assert {record.turns is not None and len(record.turns.beside) for record in runs} == {7}
    slowed = str(h200s().campaign.slowed_cores)
    assert "after 386 of 577 marked iterations" in slowed
    assert "after 386 of 577 marked iterations" in NOTES
    assert "22% longer" in slowed
    assert "the next iteration took 22 % longer" in NOTES


def test_the_noise_and_the_repeat_measurements() -> None:
    assert f"noise on the first pair of H200s is {100 * (h200s().noise or 0):.1f} %" in NOTES
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


def pairs_of(one: ResultSet) -> tuple[BothWays, ...]:
    return measured_both_ways((*one.campaign.results, *one.copies))


def both_ways(name: str) -> TurnsCheck:
    found = turns_check(pairs_of(set_of(name)))
    assert found is not None
    return found


def apart(ratio: Estimate, words: str) -> str:
    """Such as ``1.7 % less in turns (-6.3 to 0.7 %)``; the words say which way."""
    assert ratio.interval is not None
    assert ("less" if ratio.value < 1 else "more") in words
    low, high = (100 * (end - 1) for end in ratio.interval)
    return f"{abs(100 * (ratio.value - 1)):.1f} % {words} ({low:.1f} to {high:.1f} %)"


def test_physx_in_turns_and_alone() -> None:
    first, second, *h200 = map(both_ways, IN_TURNS)
    third, fourth = h200
    for found, word in (
        (first, "less on one H100"),
        (second, "more on the other"),
        (third, "less on the first single H200"),
        (fourth, "less on the third"),
    ):
        assert f"{apart(found.over_all, word)}" in NOTES
        assert (found.cost is None) == (found not in h200)  # Newton in the same turns, and not alone
        assert [case.is_within_noise for case in found.cases] == [True] * 4
    assert f"a run in turns cost {third.cost:.2f} and {fourth.cost:.2f} times the GPU-minutes of a run alone" in NOTES
    counts = [[(case.in_turns_rounds, case.alone_rounds) for case in found.cases] for found in (first, second, *h200)]
    assert [sorted(each) for each in counts] == [
        [(4, 3), (4, 3), (4, 3), (4, 4)],
        [(5, 5)] * 4,
        [(5, 5), (5, 5), (5, 5), (5, 6)],
        [(5, 5)] * 4,
    ]
    assert (
        "on the first four in turns and three alone (Cartpole with rsl_rl: four), on the second five and five" in NOTES
    )
    for name, words in (
        ("h200-turns", "on the first single H200 {}"),
        ("h200-turns-2", "on the third {}, on"),
    ):
        ended = runs_of(set_of(name))
        settled = sum(steady_part(record).flag is None for record in ended)
        assert words.format(f"{settled} of {len(ended)}") in NOTES
        assert {f"`{name}`, commit {str(record.environment.git_commit)[:7]}" in NOTES for record in ended} == {True}


def test_physx_in_turns_and_alone_over_the_machines() -> None:
    pairs = [pair for name in IN_TURNS for pair in pairs_of(set_of(name))]
    assert apart(mean_ratio(pairs), "less in turns") in NOTES
    cases = pooled(pairs)
    assert [case.is_within_noise for case in cases] == [True] * 8
    assert {(case.gpu, case.sets, case.in_turns_rounds, case.alone_rounds) for case in cases} == {
        *(("H200", 2, 10, alone) for alone in (10, 11)),
        *(("H100 80GB HBM3", 2, 9, alone) for alone in (8, 9)),
    }
    assert (
        "ten runs in turns and ten or eleven alone of each case on two H200s, and nine and eight or nine on two H100s"
        in NOTES
    )


def test_physx_beside_newton() -> None:
    takes = {}
    for name in (*H100, "h200-physx", "h200-physx-2"):
        for pair in stack_pairs(set_of(name).campaign):
            assert pair.ratio.over_base is not None
            takes[name, pair.case.case.series.partition("-")[0]] = pair.ratio.over_base.mapped(
                lambda faster: 1 / faster
            )
            assert pair.case.case.rl_library == "rsl_rl"
            assert pair.noise is None
    ant, ant_again, ant_fifth, ant_sixth = (one for (_, task), one in takes.items() if task == "ant")
    first, again, fifth, sixth = (one for (_, task), one in takes.items() if task == "cartpole")
    assert f"Ant on PhysX takes {ant_sixth.value:.2f} times as long as on Newton** ({ends(ant_sixth)})" in NOTES
    assert f"and one of Cartpole {sixth.value:.2f} times** ({ends(sixth)})" in NOTES
    assert f"For Ant it is {ant.value:.2f} times on the first two H100s" in NOTES
    assert f"{ant.value:.2f}" == f"{ant_again.value:.2f}"
    assert f"({ends(ant)} on one, {ends(ant_again)} on the other)" in NOTES
    assert f"and {ant_fifth.value:.2f} times on the fifth single H200 ({ends(ant_fifth)})" in NOTES
    assert f"For Cartpole it is {times(first)}, {times(again)} and {times(fifth)}." in NOTES


def test_the_fifth_and_the_sixth_single_h200() -> None:
    counts = {}
    for name in ("h200-physx", "h200-physx-2"):
        one = set_of(name)
        assert {record.turns is not None and len(record.turns.beside) for record in runs_of(one)} == {3}
        assert {str(record.environment.git_commit)[:7] for record in runs_of(one)} == {"655d21f"}
        counts[name] = {
            result.case.case_id.partition("-n")[0]: len(result.completed) for result in one.campaign.results
        }
    assert counts["h200-physx"].pop("cartpole-physics/rsl_rl-kitless") == 5
    assert [set(each.values()) for each in counts.values()] == [{4}, {6}]
    assert "four on the fifth single H200 (Cartpole on Newton: five), and six on the sixth." in NOTES
    settled = []
    for names in (("h200-physx",), ("h200-physx-2", "h200-start-up")):
        runs = [record for name in names for record in runs_of(set_of(name))]
        settled.append(f"{sum(steady_part(record).flag is None for record in runs)} of {len(runs)}")
    assert f"on the fifth {settled[0]}, on the sixth {settled[1]}, on the seventh" in NOTES


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


def test_versions_of_the_h100s() -> None:
    for name in (*H100, *THIRD):
        record = set_of(name).campaign.results[0].completed[0]
        found = record.ranks[0].settings
        assert f"Newton {found['versions.newton']}, rl-games {found['versions.rl-games']}" in NOTES
        assert f"rsl-rl {found['versions.rsl-rl-lib']}" in NOTES
        assert f"commit {str(record.environment.git_commit)[:7]}, driver {record.environment.driver_version}" in NOTES
        assert record.environment.num_cpus == 16
