"""What scaling loses and what a part takes alone, on GENERATED results whose answer is known, and of those in git."""

import math
import statistics
from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.analysed_set import Campaign
from reports.display.charts.scaling import throughput
from reports.display.html import Html
from reports.sets.version import Version, read_version
from reports.topics.losses import losses_page as page
from reports.topics.losses.controls import parts_alone
from reports.topics.losses.findings_page import card, opening
from reports.topics.losses.losses import Loss, losses
from suite.campaign.runs.rounds import figures
from suite.schema.record import Case, CaseResult, RlLibrary, Workload
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    failed_result,
    make_case,
    make_record,
    make_result,
    node_results,
    sweep_results,
    write_results,
)


@pytest.fixture(scope="module")
def committed() -> Version:
    return committed_version()


def weak(world_size: int, rl_library: RlLibrary = "rsl_rl") -> Case:
    """256 environments a rank."""
    return make_case(
        "ant-weak",
        world_size=world_size,
        scaling="weak",
        rl_library=rl_library,
        num_envs_global=256 * world_size,
        device="cuda",
    )


def control(workload: Workload, world_size: int) -> Case:
    return replace(weak(world_size), series=f"control-{workload}", workload=workload)


def test_what_is_lost_in_weak_scaling_is_what_parts_take_longer() -> None:
    # Generated: 50 % steps, 21 % rest of rollout, 29 % learning, with 10 % of the iteration for all-reduce on several.
    (loss,) = losses(Campaign.from_results([make_result(weak(1), 0.4), make_result(weak(4), 0.5)]))
    assert (loss.world_size, loss.baseline_id) == (4, weak(1).case_id)
    assert loss.lost == pytest.approx(1 - 0.4 / 0.5)
    assert loss.parts == pytest.approx(
        {
            "rest of steps": 0.5 - 0.8 * 0.5,
            "rest of rollout": 0.21 - 0.8 * 0.21,
            "learning": 0.19 - 0.8 * 0.29,  # it gained
            "all-reduce": 0.1,
            "waiting": 0.0,
        }
    )


def test_what_is_lost_in_strong_scaling_is_held_against_a_share_of_the_time() -> None:
    results = [
        make_result(make_case(world_size=ranks, device="cuda"), time_s) for ranks, time_s in ((1, 0.4), (4, 0.2))
    ]
    (loss,) = losses(Campaign.from_results(results))
    assert loss.lost == pytest.approx(1 - 0.1 / 0.2)
    assert loss.parts["rest of steps"] == pytest.approx(0.5 - 0.5 * 0.5)


def test_nothing_is_lost_against_another_than_the_baseline() -> None:
    """Other pages give such a case no efficiency."""
    failed = failed_result(weak(1), outcome="crashed", reason="x")
    campaign = Campaign.from_results([failed, make_result(weak(2), 0.4), make_result(weak(4), 0.5)])
    assert {row.scaling_efficiency for row in campaign.rows} == {None}
    assert losses(campaign) == ()


def test_what_is_lost_has_the_interval_of_the_efficiency() -> None:
    rounds = [make_result(weak(1), 0.40, 0.41, 0.42), make_result(weak(4), 0.50, 0.52, 0.55)]
    campaign = Campaign.from_results(rounds)
    (loss,) = losses(campaign)
    (row,) = (row for row in campaign.rows if row.world_size == 4)
    assert row.scaling_efficiency_interval is not None
    low, high = row.scaling_efficiency_interval
    assert loss.lost_interval == pytest.approx((1 - high, 1 - low))
    assert 1 - high < loss.lost < 1 - low
    few = [make_result(weak(1), 0.40), make_result(weak(4), 0.50)]
    assert losses(Campaign.from_results(few))[0].lost_interval is None


def test_every_part_has_an_interval_that_holds_it_and_widens_with_the_rounds() -> None:
    def of(*times_s: float) -> Loss:
        (loss,) = losses(Campaign.from_results([make_result(weak(1), 0.4, 0.4, 0.4), make_result(weak(4), *times_s)]))
        return loss

    calm, noisy = of(0.5, 0.5, 0.5), of(0.45, 0.5, 0.6)
    assert calm.part_intervals.keys() == calm.parts.keys()
    for part, interval in calm.part_intervals.items():
        assert interval == pytest.approx((calm.parts[part],) * 2)
    # Steps are half of every iteration, so they lose 0.5 - 0.5 * 0.4 / time; only the time on four ranks varies.
    logs = [math.log(time_s) for time_s in (0.45, 0.5, 0.6)]
    ideal = 0.5 * 0.4 / math.exp(statistics.fmean(logs))
    half_width = 4.302652729911275 * ideal * statistics.stdev(logs) / math.sqrt(3)
    assert noisy.part_intervals["rest of steps"] == pytest.approx((0.5 - ideal - half_width, 0.5 - ideal + half_width))
    assert noisy.part_intervals["all-reduce"] == pytest.approx((0.1, 0.1))
    assert losses(Campaign.from_results([make_result(weak(1), 0.4), make_result(weak(4), 0.5)]))[0].part_intervals == {}


def test_inference_is_in_the_rest_of_the_rollout() -> None:
    def timed(result: CaseResult) -> CaseResult:
        rounds = [
            replace(
                record,
                ranks=tuple(
                    replace(rank, samples={**rank.samples, "inference_time_s": infer_s})
                    for rank in record.ranks
                    for infer_s in [tuple(s and 0.1 * s for s in rank.samples["iteration_time_s"])]
                ),
            )
            for record in result.rounds
        ]
        return replace(result, rounds=tuple(rounds))

    plain = [make_result(weak(1), 0.4), make_result(weak(4), 0.5)]
    (loss,) = losses(Campaign.from_results(plain))
    (with_inference,) = losses(Campaign.from_results([timed(result) for result in plain]))
    assert "inference" in Campaign.from_results([timed(plain[0])]).inside[weak(1).case_id].shares
    assert with_inference.parts == pytest.approx(loss.parts)


def test_a_rank_that_lags_makes_the_others_wait() -> None:
    record = make_record(weak(2), iteration_time_s=[0.4, 0.5])
    (loss,) = losses(Campaign.from_results([make_result(weak(1), 0.4), CaseResult(case=weak(2), rounds=(record,))]))
    # The all-reduce of the first took 40 ms and of the second 50: 10 ms of its 500 are waiting, mean of two ranks.
    assert loss.parts["waiting"] == pytest.approx(0.01)


def test_nothing_is_said_of_sweeps_nodes_and_parts_that_were_timed_on_one_side_alone() -> None:
    assert losses(Campaign.from_results(sweep_results())) == ()
    assert [loss.case_id.rpartition("-")[2] for loss in losses(Campaign.from_results(node_results()))] == ["1x4"]
    several = make_result(weak(2), 0.5)
    physics = [
        replace(
            record,
            ranks=tuple(
                replace(
                    rank,
                    samples={
                        **rank.samples,
                        "simulate_time_s": tuple(
                            0.4 * time_s if time_s else None for time_s in rank.samples["iteration_time_s"]
                        ),
                    },
                )
                for rank in record.ranks
            ),
        )
        for record in several.rounds
    ]
    assert losses(Campaign.from_results([make_result(weak(1), 0.4), replace(several, rounds=tuple(physics))])) == ()


def test_a_part_alone_stands_beside_the_same_part_in_training() -> None:
    controls = [make_result(control("environment_step", ranks), 0.16 * ranks) for ranks in (1, 2)]
    training = [make_result(weak(ranks), 0.32 * ranks) for ranks in (1, 2)]
    unlike = [
        make_result(make_case("ant-weak", scaling="weak", num_envs_global=512, device="cuda"), 0.4),
        make_result(replace(weak(1), stack="ovphysx", case_id="ant-weak/other-stack"), 0.4),
        make_result(replace(weak(1), division="open", case_id="ant-weak/tuned"), 0.4),
        make_result(replace(weak(1), device="cpu", case_id="ant-weak/on-cpu"), 0.4),
    ]
    (part,) = parts_alone([[*training, *unlike], controls])
    assert (part.workload, part.num_envs, part.unit) == ("environment_step", 256, "step")
    # Half of an iteration is 16 steps.
    assert [(each.is_alone, each.case.world_size) for each in part.timed] == [
        (True, 1),
        (True, 2),
        (False, 1),
        (False, 2),
    ]
    assert [32 * each.time_s for each in part.timed] == pytest.approx([0.16, 0.32, 0.32, 0.64])
    assert [each.times_fewest for each in part.timed] == [None, pytest.approx(2), None, pytest.approx(2)]
    assert parts_alone([training]) == ()


def test_rollouts_over_ray_stand_beside_those_that_stay(tmp_path: Path) -> None:
    stay = replace(control("collection", 1), case_id="control-collection/1x1")
    carried = replace(control("collection_ray", 1), case_id="control-collection_ray/1x1")
    found = [make_result(stay, 0.2), make_result(carried, 0.6), make_result(weak(1), 0.4)]
    (part,) = parts_alone([found])
    assert part.workload == "collection"
    assert [each.case for each in part.timed] == [result.case for result in found]
    shown = page.alone(read_version(write_results(found, tmp_path), name="v")).text
    assert [line.split("\t")[1] for line in shown.splitlines() if "\t" in line][1:] == [
        "alone", "alone, over Ray", "in training",
    ]  # fmt: skip
    stays_s, carried_s, _ = (each.time_s for each in part.timed)
    assert carried_s / stays_s == pytest.approx(3)


def test_an_all_reduce_is_that_of_the_rank_that_waited_least_and_of_one_library() -> None:
    alone = CaseResult(
        case=control("all_reduce", 2), rounds=(make_record(control("all_reduce", 2), iteration_time_s=[0.4, 0.8]),)
    )
    training = [make_result(weak(4), 0.8), make_result(weak(4, "rl_games"), 0.8), make_result(weak(1), 0.8)]
    (part,) = parts_alone([[alone, *training]])
    assert part.num_envs is None
    # Generated: a tenth of the iteration in 4 calls; one rank has none.
    assert {each.case.rl_library for each in part.timed} == {"rsl_rl"}
    assert [40 * each.time_s for each in part.timed] == pytest.approx([0.4, 0.8])


def test_the_page_says_of_results_in_git_what_their_rounds_say(committed: Version) -> None:
    first, *said = page.lost(committed).text.splitlines()
    largest = {(one.name, loss.baseline_id): loss for one in committed.scaling for loss in losses(one.campaign)}
    sure = [loss for loss in largest.values() if loss.lost_interval is None or loss.lost_interval[0] > 0]
    much = [loss for loss in sure if loss.lost > 0.1]
    waiting = sum(max(loss.parts, key=loss.parts.__getitem__) == "waiting" for loss in much)
    assert first.startswith(f"Over 10.0 % of ideal is lost at the most GPUs of {len(much)} of {len(largest)} curves;")
    assert f"waiting in {waiting}" in first
    rsl_rl = next(one.campaign for one in committed.sets if one.name == "h200-x4-rsl")
    for row in rsl_rl.rows:
        if row.world_size == 4 and row.scaling_efficiency:
            line = next(line for line in said if line.startswith(f"{row.case_id}\t"))
            assert f"\t{100 * (1 - row.scaling_efficiency):.1f} %\t" in line
            shares = [float(cell.removesuffix(" %")) for cell in line.split("\t")[3:]]
            assert sum(shares) == pytest.approx(100 * (1 - row.scaling_efficiency), abs=0.3)  # each is rounded
    of_ant = page.of_series(committed.series("ant-weak")).text
    assert "ant-weak/rsl_rl-kitless-n4096-1x4\t" in of_ant
    assert "cartpole" not in of_ant.replace("Cartpole and Ant", "")
    alone = page.alone(committed).text
    assert "Rendering: Isaac-Reorient-Cube-Shadow-Camera-Direct, kitless, 512 environments a rank" in alone
    name = committed.machine_names["H200 host L"]
    assert f"control-cartpole-all-reduce/rsl_rl-kitless-n256-1x4\talone\t{name}\t4\t66.4\tn/a" in alone


def test_no_part_is_blamed_where_nothing_may_be_lost(tmp_path: Path) -> None:
    def said(*times_s: float) -> str:
        results = [make_result(weak(1), 0.40, 0.41, 0.42), make_result(weak(4), *times_s)]
        return page.lost(read_version(write_results(results, tmp_path / str(times_s)), name="v")).text.splitlines()[0]

    much = "Over 10.0 % of ideal is lost at the most GPUs of {} of 1 curve"
    assert said(0.50, 0.52, 0.55) == much.format(1) + "; the largest part of it is rest of steps in 1."
    assert said(0.36, 0.52, 0.55) == much.format(0) + "."  # one round gained
    assert said(0.40, 0.41, 0.42) == much.format(0) + "."


def test_an_all_reduce_alone_has_no_frames_and_says_so() -> None:
    """It once had 3.7 million frames/s in a table, and a page that reported no completed case."""
    campaign = Campaign.from_results([make_result(control("all_reduce", 2), 0.4)])
    (row,) = campaign.rows
    assert row.iteration_time_s == pytest.approx(0.4)
    assert row.total_fps is None
    assert "frames/s" not in figures(campaign.results[0].rounds[0])
    assert "frames/s" in figures(make_record(weak(2)))
    shown = throughput(campaign)
    assert isinstance(shown, Html)
    assert shown.text == "This series takes no environment steps, so it has no throughput."


def test_a_version_without_several_gpus_or_controls_says_so(tmp_path: Path) -> None:
    version = read_version(write_results([make_result(weak(1), 0.4)], tmp_path), name="v")
    assert page.lost(version).text == "No case on several GPUs says what its iterations go to beside one on fewer."
    assert page.alone(version).text == "No control ran on GPUs."
    assert page.of_series(version.series("ant-weak")).text == ""
    assert "nothing to hold against training" in page.beside_training(version, version.series("ant-weak")[0]).text


def test_the_page_opens_with_what_several_gpus_lose_most_to() -> None:
    found = card(committed_version())
    assert found is not None
    assert opening(committed_version()).text == f"{found.title}. {found.text}"
    nothing = replace(committed_version(), sets=())
    assert opening(nothing).text == "No curve over several GPUs surely loses a part of its ideal speed."
