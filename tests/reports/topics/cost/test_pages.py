"""What the pages on choosing, stacks and nodes say of GENERATED results. The cells alone: no page is built."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from reports.display.pair_tables import stacks_in_words
from reports.sets.version import Version, read_version
from reports.site import pages
from reports.topics.cost import page as choosing
from reports.topics.others import clock_page as clock
from reports.topics.others import pairs_page as side_by_side
from reports.topics.tasks import curves_page as summary
from reports.topics.tasks import overview
from reports.topics.tasks import page as series
from reports.topics.trust import limits_page as limits
from suite.schema.record import CaseResult, CheckResult
from suite.schema.telemetry import TelemetrySummary
from suite.schema.transport import Transport
from tests.fixtures.results import version_2026_12
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_case,
    make_result,
    node_results,
    on_gpus,
    smoke_results,
    stack_results,
    sweep_results,
    write_results,
)

SWEPT = {1024: 0.10, 2048: 0.11, 4096: 0.15, 8192: 0.30}  # of sweep_results: environments, seconds


def version_of(results: Sequence[CaseResult], folder: Path) -> Version:
    return read_version(write_results(on_gpus(results), folder), name="generated")


def cells(text: str, first: str) -> list[str]:
    (found,) = [line.split("\t") for line in text.splitlines() if line.startswith(first + "\t")]
    return found[1:]


def test_every_measured_number_of_gpus_has_its_hours_and_cost(tmp_path: Path) -> None:
    text = choosing.options(version_of(full_results(), tmp_path)).text
    assert len(text.splitlines()) == 1 + 16
    # 8192 environments and 16 steps in 0.3192 s: 100 million frames take 243.5 s, and 4 GPUs 0.325 of that.
    one = cells(text, "cartpole-strong: rl_games, 1 GPU")
    four = cells(text, "cartpole-strong: rl_games, 4 GPUs")
    assert one[:4] == ["0.0676 (0.0629 to 0.0727)", "0.0676", "1.00", "n/a"]
    assert four[1:3] == ["0.0886", "1.31 (1.23 to 1.39)"]
    assert one[-1] == "3"


def test_memory_of_a_gpu_that_others_use_is_not_the_cases_alone(tmp_path: Path) -> None:
    found = CheckResult(
        name="other_processes", feature="gpu", verdict="warning", found="1 with 82.4 GB", fault="gpu_in_use"
    )

    def shared(result: CaseResult) -> CaseResult:
        return replace(
            result,
            rounds=tuple(
                replace(each, environment=replace(each.environment, checks=(found,))) for each in result.rounds
            ),
        )

    said = choosing.sizes(version_of([shared(one) for one in sweep_results()], tmp_path / "shared")).text
    assert said.count("Other processes were on the GPU (1 with 82.4 GB)") == 1
    assert "GPU memory of all processes in GB" in said
    assert "Other processes" not in choosing.sizes(version_of(sweep_results(), tmp_path / "alone")).text


def test_a_difference_of_clocks_is_said_to_be_the_median_of_those_of_the_pairs(tmp_path: Path) -> None:
    folder = write_results([make_result(make_case(), 0.5)], tmp_path)
    pair = {"configuration_id": make_case().case_id, "run": 0, "ours_s": 0.5, "theirs_s": 0.4, "library_s": None}
    (tmp_path / "upstream.json").write_text(json.dumps([pair]))
    version = read_version(folder, name="v")
    said = clock.pairs(version).text
    assert "differs from that of Isaac Lab's own benchmark by +25.0%, in the median" in clock.answer(version).text
    assert "the library's" not in clock.answer(version).text
    assert "1 pair on" in said
    assert "a difference is the median of those of the pairs" in said


def test_one_measured_number_of_gpus_decides_nothing(tmp_path: Path) -> None:
    text = choosing.in_short(version_of([make_result(make_case(device="cuda"), 0.5, 0.5, 0.5)], tmp_path)).text
    assert "clear" not in text
    assert "nothing to choose: measured on 1 GPU alone" in text


def test_what_was_skipped_is_not_called_too_short_for_a_reward(tmp_path: Path) -> None:
    one, four, spread = node_results()
    ran = choosing.rewards(version_of([one, four, spread], tmp_path / "ran")).text
    skipped = failed_result(spread.case, outcome="skipped", reason="no second node")
    lacking = choosing.rewards(version_of([one, four, skipped], tmp_path / "skipped")).text
    assert "2 nodes" in ran
    assert "2 nodes" not in lacking


def test_in_short_says_how_sure_it_is(tmp_path: Path) -> None:
    text = choosing.in_short(version_of(full_results(), tmp_path)).text
    assert cells(text, "ant-weak: rsl_rl")[2:] == ["8", "clear"]
    unsure = "fewest GPU-hours within noise: the interval at 2, 0.98 to 1.11, contains 1"
    assert cells(text, "cartpole-strong: rsl_rl")[2:] == ["8", unsure]
    assert cells(text, "cartpole-strong: rl_games")[2] == "4"
    assert "too few rounds for an interval, which needs 3: 2 at 8" in cells(text, "cartpole-strong: rl_games")[3]


def test_a_sweep_says_how_many_environments_and_none_says_that_none_was_measured(tmp_path: Path) -> None:
    swept = sweep_results()
    record = swept[2].rounds[0]
    seen = TelemetrySummary(window_start_unix_s=0.0, window_s=1.0, rate_hz=5.0, num_samples=5, frames_per_joule=2000.0)
    swept[2] = replace(swept[2], rounds=(replace(record, telemetry=seen), *swept[2].rounds[1:]))
    text = choosing.sizes(version_of(swept, tmp_path / "sweep")).text
    assert "rsl_rl, kitless: 4,096 environments are the fewest with at least 95% of the most" in text
    assert cells(text, "rsl_rl, kitless, 4,096")[-2:] == ["2,000", "3"]
    assert cells(text, "rsl_rl, kitless, 1,024")[-2:] == ["not measured", "3"]
    unsure = version_of(sweep_results(rounds=1), tmp_path / "once")
    assert "within noise; by the means 4,096" in choosing.sizes(unsure).text
    nothing = version_of(full_results(), tmp_path / "full")
    assert "nothing was measured" in choosing.sizes(nothing).text
    assert "How many environments to give a GPU: not measured." in limits.uncertain(nothing).text


def test_sweeps_alone_leave_no_number_of_gpus_to_choose(tmp_path: Path) -> None:
    version = version_of(sweep_results(), tmp_path)
    for show in (choosing.in_short, choosing.options, choosing.charts, choosing.rewards):
        assert "Nothing" in show(version).text or "nothing" in show(version).text


def test_the_first_page_shows_a_sweep_by_its_environments(tmp_path: Path) -> None:
    version = version_of(sweep_results(), tmp_path)
    text = summary.answers(version).text
    assert cells(text, "Series") == ["1,024", "2,048", "4,096", "8,192"]
    found = cells(text, "ant-envs: rsl_rl, kitless")
    assert all(cell.endswith("; 3") for cell in found)
    shown = [float(cell.partition(" (")[0].replace(",", "")) for cell in found]
    assert shown == pytest.approx([16 * size / time_s for size, time_s in SWEPT.items()], rel=0.002)
    assert "scaling" not in text
    assert "ant-envs" in summary.charts(version).text
    assert "nothing is known of scaling" in summary.verdicts(version).text
    table = series.cases(version.series("ant-envs")).text
    assert "Efficiency" not in table
    assert "Total FPS" in table


def test_time_to_a_reward_is_that_of_the_rounds(tmp_path: Path) -> None:
    results = [make_result(make_case(world_size=ranks), *[0.5] * 3) for ranks in (1, 2)]
    text = choosing.rewards(version_of(results, tmp_path)).text
    assert cells(text, "cartpole-strong: rsl_rl, 2 GPUs")[1:] == ["11", "10.2", "9.48 to 10.9", "20.3", "3"]


def test_the_slider_starts_at_what_is_stated(tmp_path: Path) -> None:
    markup = choosing.charts(version_of(smoke_results(), tmp_path)).markup
    assert '"value":100' in markup
    assert '"input":"range"' in markup


def test_stacks_have_a_page_where_there_are_two(tmp_path: Path) -> None:
    version = version_of(stack_results(), tmp_path / "two")
    assert "stacks" in pages.page_sources(version)
    text = side_by_side.stacks(version).text
    first, *_ = [line for line in text.splitlines() if line.startswith("cartpole-physics/rsl_rl-ovphysx-n8192-1x2\t")]
    assert first.split("\t")[-3:] == ["0.50 (0.50 to 0.50)", "slower", "3, 3"]
    # The logarithms of three runs spread by 0.001: a difference has an error of 0.00082, t of 4 + 1 degrees is 2.571.
    assert "100.0 % longer (99.6 to 100.4 %)" in text
    assert text.count(": clear.") == stacks_in_words(version).text.count(": clear.") == 2
    one = version_of(smoke_results(), tmp_path / "one")
    assert "stacks" not in pages.page_sources(one)
    assert stacks_in_words(one).text == "No case ran on two stacks."
    assert "The same case on two stacks: not measured." in limits.uncertain(one).text


def test_several_nodes_have_a_page_where_there_are_some(tmp_path: Path) -> None:
    version = version_of(node_results(), tmp_path / "two")
    assert "nodes" in pages.page_sources(version)
    row = cells(side_by_side.nodes(version).text, "ant-weak/rsl_rl-kitless-n4096-2x2")
    assert row[3].startswith("+25.0%")
    assert "Interconnect: not recorded" in side_by_side.where_nodes_were(version).text
    one = version_of(smoke_results(), tmp_path / "one")
    assert "nodes" not in pages.page_sources(one)
    assert "The same number of GPUs on one node and on several: not measured." in limits.uncertain(one).text


def test_a_set_that_compares_nodes_alone_says_so_and_nothing_of_scaling(tmp_path: Path) -> None:
    """The baseline of one GPU is missing; the same four GPUs on more nodes are no speed-up."""
    version = version_of(node_results()[1:], tmp_path)
    said = summary.answers(version).text
    assert "nothing of scaling" in said
    assert cells(said, "ant-weak/rsl_rl-kitless-n4096-2x2")[3].startswith("+25.0%")
    assert "Efficiency" not in said
    for part in (summary.charts, summary.verdicts, summary.predictions):
        assert "nothing is known of scaling" in part(version).text
    assert "no speed-up to show" in series.speedup(version.series("ant-weak")).text
    (one,) = version.scaling
    assert {row.topology: row.scaling_efficiency for row in one.campaign.rows} == {"1x4": 1.0, "2x2": None}


def test_a_failure_makes_no_comparison_of_nodes_and_no_link_to_a_page_that_is_not_there(tmp_path: Path) -> None:
    one, four, spread = node_results()
    without_baseline = [failed_result(one.case, outcome="crashed", reason="x"), four, spread]
    said = summary.answers(version_of(without_baseline, tmp_path / "a")).text
    assert "nothing is known of scaling" in said
    assert "4 GPUs" in said  # what was measured is shown as it always is
    nothing_on_two = version_of([four, failed_result(spread.case, outcome="crashed", reason="x")], tmp_path / "b")
    assert cells(summary.answers(nothing_on_two).text, "ant-weak/rsl_rl-kitless-n4096-2x2")[3] == "n/a"
    assert "nodes" not in pages.page_sources(nothing_on_two)
    assert "1 case did not complete" in side_by_side.nodes(nothing_on_two).text


def test_nodes_that_were_emulated_say_so_and_lone_cases_are_named(tmp_path: Path) -> None:
    spread = node_results()[-1]
    crossed = Transport(library="nccl", interfaces=("lo",), between_nodes=("host_memory",), emulated=True)
    rounds = [replace(each, transport=crossed) for each in spread.rounds]
    said = side_by_side.where_nodes_were(version_of([replace(spread, rounds=tuple(rounds))], tmp_path / "a")).text
    assert "emulated. The nodes are parts of one host" in said
    assert "Interconnect: emulated (host memory)." in said
    assert "not compared: ant-weak/rsl_rl-kitless-n4096-2x2" in said
    assert "emulated" not in side_by_side.where_nodes_were(version_of(node_results(), tmp_path / "b")).text


def test_the_summary_says_in_a_sentence_what_is_left_of_ideal(tmp_path: Path) -> None:
    said = summary.answers(version_of(full_results(), tmp_path / "gpus")).text.strip()
    # Eight ranks by Amdahl with serial parts of 0.10 and 0.04, and iterations 1.6 and 1.24 times as long; their slowest
    # takes 0.9 % more: 1 / 1.6 / 1.009 = 0.62.
    assert said.startswith("8 GPUs reach 62 to 80 % of ideal where the work grows with them, and 58 to 77 % of")
    assert "too few runs (2), within noise (2)" in said
    # The logarithms of three runs spread by 0.0291: t of 4 + 1 degrees is 2.571, so the interval is 6.1 % on each side.
    # What was skipped on 16 GPUs decides nothing.
    assert "79.9 % at 8\t75.2 to 85.0 %" in said
    beside = make_result(make_case(minibatch_rule="fixed_updates"), 0.5)  # a curve of one point is not in the table
    again = summary.answers(version_of([*full_results(), beside], tmp_path / "beside")).text
    assert "too few runs (2), within noise (2)" in again
    alone = [make_result(make_case(), 0.5)]
    assert "nothing is known of scaling" in summary.answers(version_of(alone, tmp_path / "alone")).text


def test_the_summary_says_nothing_of_scaling_by_emulated_nodes() -> None:
    """The results in git are 1x4 and 2x2 emulated on four GPUs of one host."""
    version = committed_version()
    one = next(one for one in version.sets if one.name == "h200-x4-full")
    at_most = {
        (row.scaling, row.nnodes): row.scaling_efficiency or 0 for row in one.campaign.rows if row.world_size == 4
    }
    assert set(at_most) == {("weak", 1), ("weak", 2), ("strong", 1), ("strong", 2)}
    said = summary.answers(replace(version, sets=(one,))).text
    assert f"4 GPUs reach {100 * at_most['weak', 1]:.0f} % of ideal" in said
    assert f" and {100 * at_most['strong', 1]:.0f} % of ideal" in said


def test_emulated_nodes_of_several_numbers_of_ranks_are_no_scaling_either(tmp_path: Path) -> None:
    """A line of two points of their own was taken for a curve that reaches half of ideal."""
    results = [make_result(make_case(world_size=ranks), *[0.8 / ranks] * 3) for ranks in (1, 2, 4)]
    transport = Transport(library="nccl", emulated=True)
    for ranks in (2, 4):
        slow = make_result(make_case(world_size=ranks, nnodes=2), *[1.6 / ranks] * 3)
        results.append(replace(slow, rounds=tuple(replace(record, transport=transport) for record in slow.rounds)))
    said = summary.answers(version_of(results, tmp_path)).text
    assert "4 GPUs reach 100 % of ideal" in said
    assert "at least 80 % (1)" in said


def test_a_search_for_capacity_beside_scaling_has_its_environments_and_no_speed_up(tmp_path: Path) -> None:
    """The search has one rank, so its eight points at 100 % of ideal mean nothing."""
    cases = [make_case("ant-weak", scaling="weak", num_envs_global=n, device="cuda") for n in (1024, 2048)]
    write_results([make_result(case, 0.1, 0.1, 0.1) for case in cases], tmp_path / "capacity")
    write_results([result for result in full_results() if result.case.series == "ant-weak"], tmp_path / "scaling")
    version = read_version(tmp_path, name="v")
    assert [part.is_sweep for part in version.series("ant-weak")] == [True, False]
    said = "Different numbers of environments on one number of ranks: no speed-up to show."
    for shown in (series.speedup(version.series("ant-weak")), series.efficiency(version.series("ant-weak"))):
        assert shown.text.count(said) == 1
        assert shown.markup.count("<figure") == 1
    throughput = series.throughput(version.series("ant-weak"))
    assert throughput.markup.count("<figure") == 1
    assert 'href="#environments"' in throughput.markup  # where the page of the task has the other
    assert overview.sweeps(version, "Ant").markup.count("<figure") == 1


def test_a_series_on_one_number_of_gpus_has_no_chart_of_efficiency() -> None:
    """It was one point at 100 %."""
    newest = version_2026_12.version()
    assert "h100-shadow" not in summary.charts(newest).markup
    assert "shadow-horizontal: Reorient-Cube-Shadow-Camera-Direct" in summary.charts(newest).text  # of the pair of GPUs


def test_sets_of_one_number_of_gpus_are_counted_where_others_have_a_choice() -> None:
    """There were as many tables as sets, and most said that there is nothing to choose."""
    newest = version_2026_12.version()
    said = choosing.in_short(newest).text
    several = [one.title for one in newest.scaling if one.folder.name in {"h200-x2", "h100-x2-shadow"}]
    assert all(title in said for title in several)
    assert "1 x H200" not in said
    assert "Sets of one number of GPUs are left out: there is nothing to choose." in said
