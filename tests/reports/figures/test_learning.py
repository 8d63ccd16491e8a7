"""What several processes learn on one GPU, and when a reward comes on several: from results made here."""

import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reports.data.columns import _reward_window
from reports.display.html import paragraph
from reports.figures.lines import over_environments, over_gpus
from reports.figures.tables import computed, declared_of, runs_of
from reports.pages import home, tasks
from reports.pages.rewards import curve, filled_or_added, sooner, time_to_reward, times
from reports.sets.version import read_version
from reports.verification.runs import _reward_window as verified_window
from suite.schema.record import CaseResult
from tests.fixtures.results.generated_results import (
    GPU_HOST,
    make_case,
    make_record,
    make_result,
    on_gpus,
    write_results,
)

SERIES = "ant-weak/rl_games-kitless"


def measured(size: int = 128, gpus: Sequence[int] = (1, 2, 4), **changes: Any) -> list[CaseResult]:
    """Runs on GPUs, each doubling of which takes a tenth longer for an iteration."""
    name = "ant-weak" if size == 128 else f"ant-weak-{size}"
    cases = [
        make_case(
            name, world_size=number, scaling="weak", num_envs_global=size * number, rl_library="rl_games",
            device="cuda", **changes,
        )
        for number in gpus
    ]  # fmt: skip
    times_s = {number: [1.1 ** math.log2(number) * noise for noise in (0.99, 1.0, 1.01)] for number in gpus}
    return on_gpus([make_result(case, *times_s[case.world_size]) for case in cases])


SEEDS = (0.97, 1.0, 1.03)


def learned(
    processes: int, *, pace: float = 1.0, paces: Sequence[float] = SEEDS, success: float = 0.5, **changes: object
) -> CaseResult:
    """Seeds that learn at paces, in 60 iterations."""
    case = make_case(
        "ant-weak", world_size=processes, scaling="weak", num_envs_global=128 * processes, rl_library="rl_games",
        variant="learning", device="cuda", only_learning=True, seed_per_round=1000, iterations=60,
    )  # fmt: skip
    case = replace(case, **changes)  # type: ignore[arg-type]
    records = []
    for index, own in enumerate(paces):
        record = make_record(case, index=index)
        rewards = (None, *(4 * (1 - math.exp(-own * pace * number / 6)) for number in range(1, 60)))
        samples = {"reward_mean": rewards, "success_mean": (None,) * 55 + (success * own,) * 5}
        ranks = tuple(replace(rank, samples={**rank.samples, **samples}) for rank in record.ranks)
        records.append(replace(record, ranks=ranks))
    return CaseResult(case=case, rounds=tuple(records))


def figures(folder: Path, **sets: Sequence[CaseResult]) -> Mapping[str, Mapping[str, Any]]:
    for name, results in sets.items():
        write_results(on_gpus(list(results)), folder / name)
    version = read_version(folder, name="v")
    rows, runs = list(computed(version).iter_rows(named=True)), runs_of(version)
    assert len({row["id"] for row in rows}) == len(rows)
    of_rows, of_reversed = (
        {own["id"]: own for own in declared_of([*runs.completed.iter_rows(named=True)][::step])} for step in (1, -1)
    )
    assert of_reversed == of_rows  # in whatever order they were read
    return {row["id"]: row for row in rows}


def test_each_number_of_gpus_has_a_time_to_the_reward_whatever_other_sizes_ran(tmp_path: Path) -> None:
    rows = figures(tmp_path, gpus=[*measured(), *measured(512)])
    ratios = [name for name in rows if name.endswith("/over_gpus")]
    assert len(ratios) == 4
    assert all(f"{name.removesuffix('over_gpus')}time_to_reward_s" in rows for name in ratios)


def test_gpus_without_runs_of_learning_have_their_own_beside_a_filled_one_that_has_some(tmp_path: Path) -> None:
    on_one_gpu = [learned(1), learned_like(measured(512, gpus=(1,))[0])]
    rows = figures(tmp_path, gpus=[*measured(gpus=(1, 3)), *measured(512, gpus=(1,))], one=on_one_gpu)
    base, three, filled = f"gpus/{SERIES}-n128-1x1", f"gpus/{SERIES}-n384-1x3", "gpus/ant-weak-512/rl_games-kitless"
    assert [rows[f"{name}/time_to_reward_s"]["kind"] for name in (base, three)] == ["to_reward"] * 2
    assert rows[f"{three}/time_to_reward_s"]["over"] == f"set=gpus&configuration={base.removeprefix('gpus/')}"
    faster = rows[f"{filled}-n512-1x1/over_environments_per_gpu"]["value"]
    assert rows[f"{filled}-n512-1x1/fewer_frames"]["value"] == pytest.approx(1 / 4)  # it learns as much in an iteration
    assert rows[f"{filled}-n512-1x1/sooner"]["value"] == pytest.approx(faster / 4)


def test_gpus_without_runs_of_learning_beside_others_are_compared_by_their_own_runs_alone(tmp_path: Path) -> None:
    several_seeds = measured(gpus=(1, 2, 3), seed_per_round=1000)
    rows = figures(tmp_path, gpus=several_seeds, one=[learned(1), learned(2)])
    base, three = f"gpus/{SERIES}-n128-1x1", f"gpus/{SERIES}-n384-1x3"
    assert rows[f"{base}/time_to_reward_s"]["kind"] == rows[f"gpus/{SERIES}-n256-1x2/sooner"]["kind"] == "product"
    assert rows[f"{three}/sooner"]["value"] == pytest.approx(1 / 1.1 ** math.log2(3), rel=0.02)
    assert not rows.keys() & {f"{three}/{name}" for name in ("time_to_reward_s", "frames_to_reward", "reached")}
    (line,) = over_gpus(read_version(tmp_path, name="v"), "Ant")
    assert [*sooner(line)] == [2]  # that on 3 GPUs is to another reward
    assert "on 3" not in paragraph(times(line)).text


def test_of_two_possible_bases_it_is_the_one_as_shipped_whatever_their_names(tmp_path: Path) -> None:
    settings: dict[str, dict[str, Any]] = {"a": {"division": "open"}, "b": {}, "c": {}, "d": {"deterministic": True}}
    cases = [own for name, changes in settings.items() for own in measured(gpus=(1,), variant=name, **changes)]
    ratio = figures(tmp_path, gpus=cases)[f"gpus/{SERIES}-n128-1x1-d/over_is_deterministic"]
    assert ratio["over"] == f"set=gpus&configuration={SERIES}-n128-1x1-b"


def test_a_reward_comes_after_the_frames_of_as_many_processes_over_the_speed_of_the_gpus(tmp_path: Path) -> None:
    """Two processes learn at the same pace, four and eight at one and a half times."""
    on_one_gpu = [learned(1), learned(2), learned(4, pace=1.5), learned(8, pace=1.5), learned(6)]
    rows = figures(tmp_path, gpus=measured(), one=on_one_gpu)

    def of(name: str) -> Mapping[str, Any]:
        return rows[f"gpus/{SERIES}-n{name}"]

    frames = {name: of(f"{name}/frames_to_reward")["value"] for name in ("128-1x1", "256-1x2", "512-1x4")}
    assert frames["256-1x2"] == pytest.approx(2 * frames["128-1x1"])
    assert 4 / 1.5 < frames["512-1x4"] / frames["128-1x1"] < 4
    time_s, four = of("512-1x4/time_to_reward_s"), of("512-1x4/sooner")
    assert time_s["value"] == pytest.approx(frames["512-1x4"] / of("512-1x4/frames_per_s")["value"])
    assert four["value"] == pytest.approx(of("128-1x1/time_to_reward_s")["value"] / time_s["value"], rel=1e-3)
    assert four["low"] < four["value"] < four["high"]
    assert of("256-1x2/fewer_frames")["value"] == pytest.approx(0.5)  # of each seed
    assert (four["status"], of("256-1x2/sooner")["status"]) == ("clear", "clear")
    assert of("512-1x4/reached")["value"] == of("512-1x4/seeds")["value"] == 3
    predicted = of("128-1x1/8/sooner_predicted")
    ratios = [of(f"{name}/over_gpus")["value"] for name in ("512-1x4", "256-1x2")]
    fewer = frames["128-1x1"] / of("128-1x1/8/frames_to_reward")["value"]
    assert predicted["value"] == pytest.approx(fewer * ratios[0] ** 2 / ratios[1])
    assert not [name for name in rows if name.endswith("/6/sooner_predicted")]  # no doubling
    fewer_60 = [of(f"{name}/fewer_frames_60")["value"] for name in ("512-1x4", "128-1x1/8")]
    assert fewer_60[0] < of("512-1x4/fewer_frames")["value"]  # windows are as long at the steep begin of a rise
    assert of("512-1x4/sooner_60")["value"] == pytest.approx(fewer_60[0] * ratios[0])
    assert of("128-1x1/8/sooner_predicted_60")["value"] == pytest.approx(fewer_60[1] * ratios[0] ** 2 / ratios[1])
    assert of("512-1x4/reached_97")["value"] == of("128-1x1/8/reached_97")["value"] == 3
    (line,) = over_gpus(read_version(tmp_path, name="v"), "Ant")
    assert {gpus: kind for gpus, (_, kind) in sooner(line).items()} == {2: "", 4: "", 8: "predicted"}


def test_a_reward_that_no_run_rises_to_is_not_missed(tmp_path: Path) -> None:
    figures(tmp_path, gpus=measured(gpus=(1, 2)), one=[learned(own, pace=0.0) for own in (1, 2)])
    (line,) = over_gpus(read_version(tmp_path, name="v"), "Ant", of_rewards=True)
    assert sooner(line) == {}


def test_one_seed_says_nothing_of_how_much_sooner_a_reward_comes(tmp_path: Path) -> None:
    rows = figures(tmp_path, gpus=measured(gpus=(1, 2)), one=[learned(own, paces=(1.0,)) for own in (1, 2)])
    name = f"gpus/{SERIES}-n256-1x2"
    assert rows[f"{name}/reached"]["value"] == 1
    assert not rows.keys() & {f"{name}/fewer_frames", f"{name}/sooner"}


@pytest.mark.parametrize(
    ("work", "window"),
    [
        ({"episode_length_s": 16.0, "physics_dt_s": 1 / 120, "decimation": 2}, 60),
        ({"episode_length_s": 16, "physics_dt_s": 0.5, "decimation": 2.0}, 5),  # one iteration
        ({"episode_length_s": 16.0, "physics_dt_s": 0.0, "decimation": 2}, 5),
        ({"episode_length_s": 16.0, "physics_dt_s": 1e-320, "decimation": 2}, 10**9),
        ({"episode_length_s": 10**400, "physics_dt_s": 0.01, "decimation": 2}, 5),
        ({"episode_length_s": "16", "physics_dt_s": 0.01, "decimation": 2}, 5),
        ({"episode_length_s": 16.0, "decimation": True}, 5),
        (None, 5),
    ],
)
def test_a_reward_is_the_mean_over_an_episode_in_the_report_and_in_verify(work: Any, window: int) -> None:
    case = make_case("ant-weak", world_size=1, num_envs_global=128, num_steps_per_env=16)
    record = replace(make_record(case, index=0), workload=work)
    assert _reward_window(record) == window
    run = SimpleNamespace(record={"workload": work}, case={"num_steps_per_env": 16})
    assert verified_window(run) == window  # type: ignore[arg-type]


def test_rewards_on_one_gpu_are_checked_by_runs_of_the_same_seeds_on_gpus_of_their_own(tmp_path: Path) -> None:
    shared, on_gpus_of_their_own = [learned(1), learned(2)], []
    for own in shared:
        case = replace(own.case, only_learning=False, case_id=own.case.case_id.removesuffix("-learning"))
        on_gpus_of_their_own.append(CaseResult(case=case, rounds=tuple(replace(run, case=case) for run in own.rounds)))
    rows = figures(tmp_path, gpus=on_gpus_of_their_own, one=shared)
    differs = rows[name := f"gpus/{SERIES}-n256-1x2/differs_on_one_gpu"]
    assert (differs["value"], differs["runs"]) == (0, 6)
    assert name.replace("on_one_gpu", "again") not in rows  # no seed ran twice
    assert "0.0 % in 60 iterations on 2 GPUs" in tasks.charts(read_version(tmp_path, name="v"), "Ant").text


def test_a_prediction_is_of_one_base_and_of_runs_on_one_node(tmp_path: Path) -> None:
    """Eight processes of both series learn the same; on two nodes four GPUs are much slower."""
    split = [
        make_case("ant-strong", world_size=gpus, num_envs_global=1024, rl_library="rl_games", device="cuda")
        for gpus in (1, 2, 4)
    ]
    nodes = make_case(
        "ant-weak", world_size=4, nnodes=2, scaling="weak", num_envs_global=512, rl_library="rl_games", device="cuda"
    )
    speeds = [*measured(), *(make_result(case, 1.0, 1.0, 1.0) for case in split), make_result(nodes, 9.0, 9.0, 9.0)]
    on_one_gpu = [learned(processes) for processes in (1, 2, 4, 8)]
    for case in split:
        of_case = learned(case.world_size)
        own = replace(case, only_learning=True, iterations=60, seed_per_round=1000, case_id=f"{case.case_id}-learning")
        on_one_gpu.append(CaseResult(case=own, rounds=tuple(replace(run, case=own) for run in of_case.rounds)))
    rows = figures(tmp_path, gpus=speeds, one=on_one_gpu)
    predicted = {name: row["of"] for name, row in rows.items() if name.endswith("/8/sooner_predicted")}
    strong, weak = f"gpus/{SERIES.replace('weak', 'strong')}-n1024-1x1", f"gpus/{SERIES}-n128-1x1"
    assert {name.removesuffix("/8/sooner_predicted") for name in predicted} == {strong, weak}
    assert f"gpus/{SERIES}-n512-1x4/over_gpus=2" in predicted[f"{weak}/8/sooner_predicted"]
    equal = rows[f"{strong.removesuffix('1x1')}1x2/fewer_frames"]
    assert (equal["low"], equal["high"], equal["status"]) == (1.0, 1.0, "within noise")


def at_the_end(result: CaseResult) -> float:
    """The reward at the end of a result of one run, the mean over five iterations."""
    (record,) = result.rounds
    return statistics.fmean(reward for reward in record.ranks[0].samples["reward_mean"][-5:] if reward is not None)


def test_runs_of_several_sets_are_one_pool_if_they_learn_the_same_and_a_seed_counts_once(tmp_path: Path) -> None:
    name = f"gpus/{SERIES}-n128-1x1"
    alone = figures(tmp_path / "a", gpus=measured(), one=[learned(1), learned(2)])
    same_seeds = figures(tmp_path / "b", gpus=measured(), one=[learned(1), learned(2)], two=[learned(1)])
    assert same_seeds[f"{name}/seeds"]["value"] == 3
    ends = ("value", "low", "high")
    assert [same_seeds[f"{name}/frames_to_reward"][end] for end in ends] == pytest.approx(
        [alone[f"{name}/frames_to_reward"][end] for end in ends]
    )
    assert same_seeds[f"{name}/learned_reward"]["runs"] == 6
    unlike = learned(1, pace=0.5, paces=SEEDS[:1])  # the first seed, learning something else
    again = figures(tmp_path / "d", gpus=measured(), one=[learned(1), learned(2)], two=[unlike])
    first, *others = (at_the_end(learned(1, paces=(pace,))) for pace in SEEDS)
    expected = sorted([(first + at_the_end(unlike)) / 2, *others])
    shown = [again[f"{name}/learned_reward{end}"]["value"] for end in ("_least", "", "_most")]
    assert shown == pytest.approx(expected)
    more = [learned(1, seed=142), learned(2, seed=142, minibatch_size=256)]
    other = figures(tmp_path / "c", gpus=measured(), one=[learned(1), learned(2)], two=more)
    assert other[f"{name}/seeds"]["value"] == 6
    assert other[f"gpus/{SERIES}-n256-1x2/seeds"]["value"] == 3  # with other minibatches it learns something else
    alone = figures(tmp_path / "e", gpus=measured(), one=[learned(1), learned(2)], two=[learned(2, seed=142)])
    seeds, frames = (alone[f"gpus/{SERIES}-n256-1x2/{end}"] for end in ("seeds", "frames_to_reward"))
    assert (seeds["value"], frames["runs"]) == (3, 6)  # the base has no more of them


@pytest.mark.parametrize(
    ("success", "paces", "is_learned"),
    [
        (0.5, SEEDS, True),
        (0.49, SEEDS, False),
        (0.5, (0.5, 1.0, 1.03), True),  # the median over seeds decides, which is shown, and not their mean
        (0.49, (0.97, 1.0, 2.0), False),
    ],
)
def test_a_training_has_a_time_to_a_reward_if_half_of_its_episodes_succeed(
    tmp_path: Path, success: float, paces: Sequence[float], *, is_learned: bool
) -> None:
    one = [learned(own, success=success, paces=paces) for own in (1, 2)]
    rows = figures(tmp_path, gpus=measured(gpus=(1, 2)), one=one)
    base = f"gpus/{SERIES}-n128-1x1"
    for name in ("reward_mean_to_reach", "time_to_reward_s", "reached"):
        assert (f"{base}/{name}" in rows) == is_learned
    (line,) = over_gpus(read_version(tmp_path, name="v"), "Ant", of_rewards=True)
    assert ("49" in paragraph(time_to_reward(line)).text) == (not is_learned)


def test_the_first_page_is_of_a_training_that_learned_its_task_before_it_is_of_most_gpus(tmp_path: Path) -> None:
    few_succeed = [learned_like(own, success=0.4) for own in measured(512)]
    one = [learned(1), learned(2), *few_succeed]
    figures(tmp_path, gpus=[*measured(gpus=(1, 2)), *measured(512)], one=one)
    version = read_version(tmp_path, name="v")
    assert [len(line.learned) for line in over_gpus(version, "Ant", of_rewards=True)] == [2, 1]
    assert f"gpus/{SERIES}-n128-1x1/time_to_reward_s" in home.opening(version).markup


def test_every_number_of_processes_has_its_reward_and_success_at_the_end(tmp_path: Path) -> None:
    rows = figures(tmp_path, gpus=measured(gpus=(1, 2)), one=[learned(1), learned(2), learned(4, paces=(0.8,))])
    (line,) = over_gpus(read_version(tmp_path, name="v"), "Ant")
    base = f"gpus/{SERIES}-n128-1x1"
    names = {"1": base, "2": f"gpus/{SERIES}-n256-1x2", "4": f"{base}/4"}
    assert [rows[f"{name}/learned_success"]["value"] for name in names.values()] == [0.5, 0.5, 0.4]
    for (number, name), cells in zip(names.items(), tasks._at_the_end(line), strict=True):
        reward, success = (paragraph(cell).markup for cell in (cells[4], cells[-1]))
        assert cells[1] == number
        assert f'value="{name}/learned_reward"' in reward
        assert f'value="{name}/learned_success"' in success


def test_a_curve_of_rewards_ends_with_the_reward_of_the_table(tmp_path: Path) -> None:
    """Of runs of learning it is the mean over an episode, here of eight iterations; of others the median of five.

    A seed that ran twice counts once.
    """
    on_one_gpu = [learned(1, pace=0.2), learned(2, pace=0.2), learned(1, pace=0.1, paces=SEEDS[:1])]
    episode_s = 8 * on_one_gpu[0].case.num_steps_per_env
    episode = {"episode_length_s": episode_s, "physics_dt_s": 0.5, "decimation": 2}
    on_one_gpu = [
        replace(own, rounds=tuple(replace(run, workload=episode) for run in own.rounds)) for own in on_one_gpu
    ]
    on_gpus_of_their_own = [*measured(gpus=(1, 2)), *measured(512, gpus=(1, 2))]
    figures(tmp_path, gpus=on_gpus_of_their_own, one=on_one_gpu[:2], two=on_one_gpu[2:])
    version = read_version(tmp_path, name="v")
    lines = over_gpus(version, "Ant", of_rewards=True)
    known = [
        (line.figure(row, "learned_reward") or line.figure(row, "last_reward") or {}, [*curve(version, row, "")][-1])
        for line in lines
        for row in line.rows
    ]
    assert sorted(own["column"] for own, _ in known) == ["last_reward"] * 2 + ["learned_reward/seed"] * 2
    assert [end.y for _, end in known] == pytest.approx([own["value"] for own, _ in known])
    cells = [cells[4] for line in lines for cells in tasks._at_the_end(line)]
    assert [paragraph(cell).text for cell in cells] == [f"{end.y:.3g}" for _, end in known]


def test_a_curve_of_rewards_is_of_runs_of_these_before_it_is_of_most_gpus(tmp_path: Path) -> None:
    """Four GPUs have other minibatches, of which no run says what they learn."""
    other = [replace(own, case=replace(own.case, minibatch_size=256)) for own in measured()]
    other = [replace(own, rounds=tuple(replace(run, case=own.case) for run in own.rounds)) for own in other]
    figures(tmp_path, most=other, gpus=measured(gpus=(1, 2)), one=[learned(1), learned(2), learned(4)])
    version = read_version(tmp_path, name="v")
    assert [line.rows[-1]["gpus"] for line in over_gpus(version, "Ant")] == [4]
    (line,) = over_gpus(version, "Ant", of_rewards=True)
    assert [row["set"] for row in line.rows] == ["gpus", "gpus"]
    shown = tasks.charts(version, "Ant").markup
    assert all(f"gpus/{SERIES}-n{name}" in shown for name in ("256-1x2/sooner", "128-1x1/4/sooner_predicted"))
    assert f"most/{SERIES}-n128-1x1/time_to_reward_s" not in shown
    assert f"gpus/{SERIES}-n128-1x1/time_to_reward_s" in home.opening(version).markup


def filled(environments: int, time_s: float, *, has_same_steps: bool = False) -> CaseResult:
    """One GPU with more environments: minibatches of the same size, or as many of them."""
    times = environments // 128
    series, size, steps = ("ant-as-several", 512 * times, 4) if has_same_steps else ("ant-envs", 512, 4 * times)
    case = make_case(
        series, scaling="weak", num_envs_global=environments, rl_library="rl_games", device="cuda",
        minibatch_size=size, optimiser_steps=steps,
    )  # fmt: skip
    return make_result(case, *(time_s * noise for noise in (0.99, 1.0, 1.01)))


def learned_like(
    result: CaseResult, *, pace: float = 1.0, paces: Sequence[float] = SEEDS, success: float = 0.5
) -> CaseResult:
    """Runs that say what the runs of a result learn."""
    own = result.case
    same = ("series", "num_envs", "num_envs_global", "minibatch_size", "optimiser_steps")
    case_id = f"{own.case_id}-learning"
    changes = {name: getattr(own, name) for name in same}
    return learned(1, pace=pace, paces=paces, success=success, case_id=case_id, **changes)


WHETHER = "Whether filling one GPU brings the reward sooner than 4 GPUs"


@pytest.mark.parametrize(
    ("gpus", "filled_paces", "paces", "claim", "shown"),
    [
        # On 4 GPUs a run of as many iterations takes 1.21 times as long, on the filled one twice as long.
        ((1, 2, 4), (3.9, 4.0, 4.1), SEEDS, "Filling one GPU brings the reward sooner than 4 GPUs", 2),
        # Their intervals overlap at 60 %; that of their ratio is above 1.
        ((1, 2, 4), (1.9, 2.0, 2.1), SEEDS, "Filling one GPU brings the reward sooner than 4 GPUs", 2),
        ((1, 2, 4), (0.9, 1.0, 1.1), SEEDS, "Filling one GPU brings the reward later than 4 GPUs", 2),
        ((1, 2, 4), (1.4, 1.9, 2.6), SEEDS, f"{WHETHER} is within noise.", 2),
        (
            (1, 2, 4),
            (1.85, 1.95, 2.05),
            SEEDS,
            f"{WHETHER} depends on the mark: within noise at 60 %, sooner at 70,",
            2,
        ),
        (
            (1, 2, 4),
            (1.4, 1.9, 0.35),
            SEEDS,
            f"{WHETHER} is within noise at 60, 70, 80 and 90 %, open at 95 and 97 % of",
            2,
        ),
        ((1, 2, 4), (4.0, 4.0, 0.1), SEEDS, f"{WHETHER} is open.", 1),
        ((1, 2, 4), (3.9, 4.0, 4.1), (1.0, 1.0, 0.1), f"{WHETHER} is open.", 1),
        ((1, 2, 4), (4.0, 4.0, 0.1), (1.0, 1.0, 0.1), f"{WHETHER} is open.", 0),
        ((1, 2), (3.9, 4.0, 4.1), SEEDS, "Filling one GPU brings the reward sooner than is predicted of 4 GPUs", 2),
    ],
)
def test_filling_a_gpu_is_said_to_be_sooner_than_adding_gpus_only_where_their_ratio_is_clear(
    tmp_path: Path, gpus: Sequence[int], filled_paces: Sequence[float], paces: Sequence[float], claim: str, shown: int
) -> None:
    full = filled(512, 2.0)
    on_one_gpu = [learned(1), learned(2), learned(4, paces=paces), learned_like(full, paces=filled_paces)]
    rows = figures(tmp_path, gpus=[*measured(gpus=gpus), full], one=on_one_gpu)
    version = read_version(tmp_path, name="v")
    (added,), (one,) = over_gpus(version, "Ant", of_rewards=True), over_environments(version, "Ant", of_rewards=True)
    sentence = paragraph(filled_or_added(one, added))
    assert sentence.text.startswith(claim)
    assert "4 processes" in sentence.text
    assert sentence.text.count("after 60 iterations") == 2
    assert {name.rpartition("/")[2] for name in rows if f'"{name}"' in sentence.markup} >= {"learned_reward_least"}
    ratios = [name for name in rows if f'"{name}"' in sentence.markup and "sooner" in name]
    assert len(ratios) == shown
    seeds = min(len(filled_paces), len(paces))
    assert f"{seeds} seed{': too few to say' if seeds < 3 else 's)'}" in sentence.text
    as_soon = rows.get(f"gpus/{full.case.case_id}/sooner", {"low": None})
    assert ("512 environments on one GPU" in home.table(version).text) == (as_soon["low"] is not None)
    page = tasks.charts(version, "Ant")
    assert sentence.text in page.text
    assert ("environments of 4" in page.markup) == any("ant-envs" in name for name in ratios)  # in the table


def test_a_filled_gpu_is_compared_with_added_ones_where_their_numbers_meet_and_are_known(tmp_path: Path) -> None:
    """It is filled to two, three and four times: with minibatches of one size, and with as many of them."""
    every = [filled(128, 1.0), filled(256, 1.5), filled(384, 1.8), filled(512, 2.0)]
    several = [filled(size, time_s, has_same_steps=True) for size, time_s in ((128, 1.0), (256, 1.2), (512, 1.4))]
    on_one_gpu = [learned(1), learned(2), learned(4, paces=(1.0, 1.0, 0.1))]
    on_one_gpu += [learned_like(own) for own in (*every[1:], *several[1:])]
    rows = figures(tmp_path, gpus=measured(), sweep=[*every, *several], one=on_one_gpu)
    version = read_version(tmp_path, name="v")
    (added,), lines = over_gpus(version, "Ant"), over_environments(version, "Ant", of_rewards=True)
    assert {line.label: [row["optimiser_steps"] for row in line.rows] for line in lines} == {
        "rl_games, one Generated Accelerator, same steps": [4, 4, 4],
        "rl_games, one Generated Accelerator": [4, 8, 12, 16],
    }
    for line, gpus in zip(lines, ([2, 4], [2, 3, 4]), strict=True):
        assert list(sooner(line)) == gpus
        assert f"sweep/{line.base['configuration']}/reached" in rows  # the one of both that ratios are over
        sentence = paragraph(filled_or_added(line, added)).markup  # not every run of 4 GPUs had the reward
        assert f"gpus/{SERIES}-n256-1x2/sooner" in sentence
        assert sum(f'"{name}"' in sentence for name in rows if "1x1/sooner" in name) == 1
    for another in ({"gpu_model": "another"}, {"scaling": "strong"}):  # whose GPUs share the environments of one
        other = replace(added, rows=tuple({**row, **another} for row in added.rows))
        assert filled_or_added(lines[0], other) == ""


def test_the_source_of_a_chart_of_rewards_is_where_its_curves_ran(tmp_path: Path) -> None:
    """Those of a training of which other runs say what it learns; of the one beside it, its own."""
    small = replace(GPU_HOST, num_cpus=16)
    on_one_gpu = [learned(1), learned(2)]
    on_one_gpu = [
        replace(own, rounds=tuple(replace(run, environment=small) for run in own.rounds)) for own in on_one_gpu
    ]
    figures(tmp_path, gpus=measured(gpus=(1, 2)), one=on_one_gpu)
    assert cpus_in_source(tmp_path) == {"16"}
    figures(tmp_path, gpus=measured(512, gpus=(1, 2)))
    assert cpus_in_source(tmp_path) == {"16", "128"}


def cpus_in_source(folder: Path) -> set[str]:
    """The CPU cores of each machine that the chart of rewards names as its source."""
    markup = tasks.charts(read_version(folder, name="v"), "Ant").markup
    (chart,) = re.findall(r'id="task-ant-learning".*?<script type="application/json">(.*?)</script>', markup, re.DOTALL)
    return set(re.findall(r"(\d+)\W+vCPU", chart))
