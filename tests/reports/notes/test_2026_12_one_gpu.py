"""What the notes of version 2026.12 say of one GPU on Newton is what results in git say."""

from statistics import median

import pytest

from reports.analysis.divisions import Gain, gains
from reports.analysis.rows import case_times, speedup_of
from reports.sets.version import ResultSet
from reports.topics.determinism.model import pairs
from reports.topics.pipeline.model import pipelines
from reports.topics.pipeline.ray_model import over_ray
from reports.topics.shared_gpu.model import groups
from suite.schema.record import RunRecord
from suite.statistics.intervals import Estimate, median_of
from suite.statistics.reduce import steady_part
from suite.statistics.stopping_rule import completed_times_s
from tests.fixtures.results.version_2026_12 import FOLDER, NOTES, ends, frames_ratio, row, runs_of, set_of, times

TUNED_TASKS = ("Cartpole", "Ant")


def of_seeds(one: ResultSet) -> list[Gain]:
    return sorted(gains(one.campaign.results), key=lambda found: found.case.series, reverse=True)


def seeds_of(one: ResultSet) -> set[int]:
    return {int(str(record.ranks[0].settings["seed"])) for record in runs_of(one)}


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


def test_deterministic_settings() -> None:
    (pair,) = pairs(set_of("h100-deterministic").campaign.results)
    assert pair.longer is not None
    assert f"make an iteration of Cartpole {pair.longer.value:.2f} times as long** ({ends(pair.longer)})" in NOTES
    assert [(each.runs, each.are_equal) for each in pair.repeats if each] == [(3, True), (3, True)]
    assert "Three runs of one seed are equal bit for bit, with these settings and as shipped" in NOTES


def share(found: Estimate | None) -> str:
    assert found is not None
    assert found.interval is not None
    low, high = found.interval
    return f"{100 * found.value:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


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


def test_the_seventh_machine() -> None:
    runs = [record for name in ("h100-deterministic", "h100-shared") for record in runs_of(set_of(name))]
    settled = sum(steady_part(record).flag is None for record in runs)
    assert f"on the seventh {settled} of {len(runs)}," in NOTES
    assert {str(record.environment.git_commit)[:7] for record in runs} == {"1bf006f"}
    assert {len(record.turns.beside) if record.turns else None for record in runs} == {1, 2}


def test_stable_baselines3_beside_rl_games() -> None:
    results = {result.case.case_id: result for result in set_of("h200-sb3").campaign.results}
    assert {len(result.completed) for result in results.values()} == {3}
    for task, envs, words in (
        ("cartpole", 4096, "{} times the frames of rl_games in Cartpole** ({})"),
        ("ant", 1024, "and {} times in Ant ({}), where no difference is seen"),
    ):
        theirs, ours = (results[f"{task}-numpy/{library}-kitless-n{envs}-1x1"] for library in ("rl_games", "sb3"))
        found = frames_ratio(ours, theirs)
        assert words.format(f"{found.value:.2f}", ends(found)) in NOTES
        if task == "cartpole":
            share = median(learning_share(record) for record in ours.completed)
            assert f"In Cartpole {100 * share:.0f} % of its iteration is learning" in NOTES
            its, that = (f"{one.case.optimiser_steps} {{}} {one.case.frames_per_iteration:,}" for one in (ours, theirs))
            assert f"its agent takes {its.format('optimiser steps for')}" in NOTES
            assert f"that of rl_games {that.format('for')}" in NOTES


def test_the_second_single_h200() -> None:
    (result,) = set_of("h200-skrl").campaign.results
    found = median_of(completed_times_s(result.completed))
    fastest, slowest = (result.case.frames_per_iteration / end for end in found.interval or ())
    middle = result.case.frames_per_iteration / found.value
    assert f"skrl processes {middle:,.0f} frames/s of Cartpole ({slowest:,.0f} to {fastest:,.0f})" in NOTES
    runs = [record for name in ("h200-sb3", "h200-skrl") for record in runs_of(set_of(name))]
    settled = sum(steady_part(record).flag is None for record in runs)
    assert f"on the second {settled} of {len(runs)}, on the third" in NOTES
    assert {str(record.environment.git_commit)[:7] for record in runs} == {"d9ab449"}


def test_torchrl_its_pipeline_and_its_collector() -> None:
    found = {
        result.case.case_id.partition("/")[0] + result.case.rl_library: result
        for name in ("h200-torchrl", "h200-torchrl-camera")
        for result in set_of(name).campaign.results
    }
    assert {len(result.completed) for result in found.values()} == {3}
    torchrl, step, collection = (
        found[key]
        for key in ("cartpole-torchrltorchrl", "control-cartpole-steprsl_rl", "control-cartpole-collectiontorchrl")
    )
    (pipeline,) = pipelines(set_of("h200-torchrl").campaign.results)
    assert pipeline.over_in_turn is not None
    assert pipeline.overlapped is not None
    assert f"makes {pipeline.over_in_turn.value:.2f} times the frames of TorchRL in turn** (" in NOTES
    assert f"in turn** ({ends(pipeline.over_in_turn)}), where both share one H200" in NOTES
    assert f"Both work in {100 * pipeline.overlapped:.1f} % of the time, and" in NOTES
    assert pipeline.staleness == 1
    fps = median_of(completed_times_s(torchrl.completed)).mapped(
        lambda time_s: torchrl.case.frames_per_iteration / time_s
    )
    assert fps.interval is not None
    low, high = fps.interval
    assert f"TorchRL processes {fps.value:,.0f} frames/s ({low:,.0f} to {high:,.0f})" in NOTES
    for ours, theirs, words in (
        (torchrl, found["cartpole-torchrlrsl_rl"], "{} times those of rsl_rl ({})"),
        (
            found["control-camera-collectiontorchrl"],
            found["control-camera-steprsl_rl"],
            "its collector makes {} times the frames of the environments stepped alone ({})",
        ),
        (collection, step, "too wide to tell: {} times ({})"),
        (found["control-cartpole-collection-raytorchrl"], collection, "{} times those of the collector here ({})"),
    ):
        ratio = frames_ratio(ours, theirs)
        assert words.format(f"{ratio.value:.2f}", ends(ratio)) in NOTES
    runs = [record for name in ("h200-torchrl", "h200-torchrl-camera") for record in runs_of(set_of(name))]
    settled = sum(steady_part(record).flag is None for record in runs)
    assert f"on the fourth {settled} of {len(runs)}, on the fifth" in NOTES
    assert {str(record.environment.git_commit)[:7] for record in runs} == {"3694dca"}
    for name, spoken in (("torchrl", "TorchRL"), ("ray", "Ray")):
        assert f"{spoken} {torchrl.completed[0].ranks[0].settings[f'versions.{name}']}" in NOTES


def test_the_pipeline_on_two_gpus() -> None:
    one = set_of("h200-x2-torchrl")
    (pipeline,) = pipelines(one.campaign.results)
    assert (pipeline.case.world_size, pipeline.staleness, pipeline.batches_between_syncs) == (2, 1, 1)
    assert pipeline.over_in_turn is not None
    assert pipeline.overlapped is not None
    assert pipeline.collecting_fps is not None
    assert pipeline.fps is not None
    assert f"an H200 for each it is {pipeline.over_in_turn.value:.2f} times** ({ends(pipeline.over_in_turn)})" in NOTES
    collecting, in_all = (f"{found.value:,.0f}" for found in (pipeline.collecting_fps, pipeline.fps))
    assert f"makes {collecting} frames/s while it collects, and {in_all} in all" in NOTES
    assert f"Both work in {100 * pipeline.overlapped:.1f} % of the time there" in NOTES
    runs = runs_of(one)
    flags = {record.case.workload: steady_part(record).flag is None for record in runs}
    assert f"second pair of H200s {sum(steady_part(record).flag is None for record in runs)} of {len(runs)}, " in NOTES
    assert flags == {"train": False, "async_pipeline": True}
    assert {str(record.environment.git_commit)[:7] for record in runs} == {"3694dca"}
    assert {record.environment.num_cpus for record in runs} == {32}


def test_a_camera_collected_over_ray() -> None:
    one = set_of("h200-torchrl-camera-ray")
    (found,) = over_ray(one.campaign.results)
    assert found.fps is not None
    assert found.here_fps is not None
    rates = f"one run of each makes {found.fps.value:,.0f} and {found.here_fps.value:,.0f} frames/s."
    assert f"On the seventh, {rates}" in NOTES
    runs = runs_of(one)
    assert (
        f"on the seventh {sum(steady_part(record).flag is None for record in runs)} of {len(runs)}, on the eighth"
        in NOTES
    )
    assert {str(record.environment.git_commit)[:7] for record in runs} == {"3694dca"}


def learning_share(record: RunRecord) -> float:
    (rank,) = record.ranks
    learning_s, iteration_s = (
        median(value for value in rank.samples[name] if value is not None)
        for name in ("learning_time_s", "iteration_time_s")
    )
    return learning_s / iteration_s
