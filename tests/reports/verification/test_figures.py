"""Published figures: each kind against a value worked by hand or by scipy, real data, and forgeries of the file."""

import csv
import math
import shutil
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats as scipy_stats

from reports.verification import kinds
from reports.verification.figures import COLUMNS, FILE, MEND_FIRST
from reports.verification.first import verify
from tests.fixtures.results.damaged_results import RUN, damage, put, sentences, write_all_hashes
from tests.fixtures.results.forged_version import SHADOW, SMALL, write_version
from tests.fixtures.results.learning_results import LEARNING_SET, ONE, write_learning

TIMES_S = {"a": [1.0, 1.1, 1.3, 1.2], "b": [0.5, 0.6, 0.6, 0.7]}
SET, NAME = "h200-x2-per-gpu", "cartpole-per-gpu/rl_games-kitless-n8192-1x2"
ROW, NODES = f"{SET}/{NAME}", "h200-x2-nodes/ant-weak/rl_games-kitless-n2048-2x1/over_nodes"
PRINTED = "isaaclab/cartpole/4/frames_per_s"
LEARNS = "h200-x2-shadow/shadow-horizontal/rsl_rl-kitless-n1024-1x2"
LEARNED, OF_LEARNED = f"{LEARNING_SET}/{ONE}-learning/iteration_s", f"set={LEARNING_SET}&configuration={ONE}-learning"
OTHER_TASK = "set=h200-x2-nodes&configuration=cartpole-strong/rl_games-kitless-n8192-1x2"
LEFT_OUT = (f"{ROW}/frames_per_s", f"{ROW}/share_kept_50", f"{LEARNS}/learned_success", "total/machine")
RUNS: list[dict[str, Any]] = [
    {
        "set": "s", "series": "s", "library": "l", "workload": "train", "configuration": name, "run": number,
        "frames_per_iteration": frames, "gpus": gpus, "iteration_s": TIMES_S[name][number], "block": number,
        "seed": number, "log_probe": None, "is_alone": False, "is_repeat": False, "learned_success": None,
    }
    for name, gpus, frames in (("a", 1, 10), ("b", 2, 20)) for number in range(4)
]  # fmt: skip


def computed(kind: str, column: str, every: list[dict[str, Any]], *, over: str = "") -> list[Any]:
    """Value, ends of the interval, runs and status of a figure of b."""
    of, base = ([row for row in every if row["configuration"] == name] for name in ("b", over))
    return list(kinds.figure(kind, column, of, base, every).values())


@pytest.mark.parametrize(
    ("kind", "value"), [("average", 0.6), ("median", 0.6), ("least", 0.5), ("most", 0.7), ("count", 3)]
)
def test_a_kind_of_the_values_of_runs(kind: str, value: float) -> None:
    assert computed(kind, "iteration_s", RUNS) == [pytest.approx(value), None, None, 4, None]


def test_a_seed_counts_once_as_the_mean_over_its_runs() -> None:
    runs = [{**row, "seed": seed} for row, seed in zip(RUNS[4:], (1, 1, 1, 2), strict=True)]
    of_seeds = statistics.fmean(TIMES_S["b"][:3]), TIMES_S["b"][3]
    for kind, value in {"median": statistics.fmean(of_seeds), "least": of_seeds[0], "most": of_seeds[1]}.items():
        assert computed(kind, "iteration_s/seed", runs) == [pytest.approx(value), None, None, 4, None]


def test_a_mean_has_students_interval_on_logarithms_and_a_share_adds_runs() -> None:
    logs = np.log(TIMES_S["b"])
    interval = scipy_stats.t.interval(0.95, 3, loc=logs.mean(), scale=logs.std(ddof=1) / 2)
    assert computed("mean", "iteration_s", RUNS)[:3] == pytest.approx(list(map(math.exp, (logs.mean(), *interval))))
    assert computed("mean", "iteration_s", RUNS[4:6])[1:4] == [None, None, 2]
    assert computed("share", "run/gpus", RUNS)[0] == pytest.approx((0 + 1 + 2 + 3) / 8)


@pytest.mark.parametrize("freedom", [1, 2, 2.7, 3, 4.5, 9, 30, 400])
def test_quantiles_of_students_distribution_agree_with_scipy(freedom: float) -> None:
    assert kinds.student_t(freedom) == pytest.approx(scipy_stats.t.ppf(0.975, freedom), rel=1e-9)


@pytest.mark.parametrize(("kind", "factor"), [("ratio", 2.0), ("share_kept", 1.0)])
def test_a_ratio_of_runs_in_turns_is_the_paired_t_test_and_of_others_welchs(kind: str, factor: float) -> None:
    a, b = (np.log(TIMES_S[name]) for name in "ab")
    interval = scipy_stats.ttest_rel(a, b).confidence_interval()
    expected = [factor * math.exp(log) for log in (a.mean() - b.mean(), *interval)]
    assert computed(kind, "iteration_s", RUNS, over="a") == [*map(pytest.approx, expected), 8, "clear"]
    alone = [{**row, "block": None, "equal_s": TIMES_S["a"][row["run"]]} for row in RUNS]
    interval = scipy_stats.ttest_ind(a, a, equal_var=False).confidence_interval()
    assert computed(kind, "equal_s", alone, over="a")[1:3] == pytest.approx([factor * math.exp(x) for x in interval])


def test_turns_are_compared_with_copies_alone_by_welch_and_only_in_sets_that_have_both() -> None:
    alone = [
        {**row, "is_alone": True, "iteration_s": 2 * time_s}
        for row, time_s in zip(RUNS[4:], (0.4, 0.5, 0.7, 0.9), strict=True)
    ]
    other = [{**row, "set": "t"} for row in RUNS]
    logs = [np.log([row["iteration_s"] for row in rows]) for rows in (RUNS[4:], alone)]
    interval = scipy_stats.ttest_ind(*logs, equal_var=False).confidence_interval()
    expected = [math.exp(log) for log in (logs[0].mean() - logs[1].mean(), *interval)]
    figure = kinds.figure("in_turns", "iteration_s", [*RUNS, *other], (), [*RUNS, *alone])
    assert list(figure.values()) == [*map(pytest.approx, expected), 8, "clear"]


def test_a_slope_has_one_pseudo_observation_at_a_half() -> None:
    probes, weight = [0.0, 0.2, 0.5, 0.3, 0.1, 0.4, 0.2, 0.6], math.sqrt(kinds.PULL)
    runs = [{**row, "block": None, "log_probe": probe} for row, probe in zip(RUNS, probes, strict=True)]
    design = [[row["configuration"] == "a", row["configuration"] == "b", row["log_probe"]] for row in runs]
    y = [*np.log([row["iteration_s"] for row in runs]), weight * kinds.SLOPE]
    slope = np.linalg.lstsq(np.array([*design, [0, 0, weight]], float), y, rcond=None)[0][-1]
    value, low, high, *_ = computed("slope", "iteration_s", runs)
    assert value == pytest.approx(slope) == (low + high) / 2


def test_machines_are_observations_of_a_fit_with_a_column_for_each_gpu_model() -> None:
    """Solved with dummies and one more row, which says a half of the slope; the interval by the same design."""
    models, probes, noise = "AAAABBBBB", np.arange(9) / 10, 0.02 * (-1) ** np.arange(9)
    logs = 0.7 * probes + noise + [0.2 * (model == "A") for model in models]
    runs = [
        {
            **RUNS[0], "configuration": str(place), "machine": str(place), "gpu_model": model,
            "one_gpu_training": "t", "log_probe": probe + off, "iteration_s": math.exp(log - off),
        }
        for place, (model, probe, log) in enumerate(zip(models, probes, logs, strict=True)) for off in (-0.1, 0.1)
    ]  # fmt: skip
    design = np.array([[model == "A", model == "B", probe] for model, probe in zip(models, probes, strict=True)], float)
    whole = np.vstack([design, [0, 0, math.sqrt(kinds.PULL)]])
    inverse = np.linalg.inv(whole.T @ whole)
    effects = inverse @ whole.T @ [*logs, math.sqrt(kinds.PULL) * kinds.SLOPE]
    squares = 0.05 + 0.1  # of the probes, within the models
    freedom = 9 - 2 - squares / (squares + kinds.PULL)
    variance = float(np.sum((logs - design @ effects) ** 2)) / freedom

    def interval(contrast: list[int]) -> list[float]:
        half = scipy_stats.t.ppf(0.975, freedom) * math.sqrt(variance * np.array(contrast) @ inverse @ contrast)
        return [float(effects @ contrast) + end * half for end in (0, -1, 1)]

    of, over = ([row for row in runs if row["gpu_model"] == model] for model in "BA")
    ratio = kinds.figure("machines_ratio", "iteration_s", of, over, runs)
    assert [*ratio.values()][:3] == pytest.approx([*map(math.exp, interval([1, -1, 0]))])
    alone = kinds.figure("machines_ratio", "iteration_s", of[:2], over, runs)
    assert alone["value"] == pytest.approx(math.exp(effects @ [1, 0, 0.4] - logs[4]))
    assert alone["low"] is None
    slope = kinds.figure("machines_slope", "iteration_s", runs, (), runs)
    assert [*slope.values()][:3] == pytest.approx(interval([0, 0, 1]))
    with pytest.raises(ValueError, match="one training"):
        kinds.figure("machines_ratio", "iteration_s", [{**row, "one_gpu_training": "u"} for row in of], over, runs)


def test_how_much_sooner_a_reward_comes_is_a_ratio_of_each_seed() -> None:
    """The reward to reach is 90 % of the rise from 20, where the fastest run begins, to 97."""
    rates = (1, 2, 5, 10, 2, 4, 10, 20)
    curves = [{"iteration_s": 1, "reward_mean": np.arange(100.0) * rate, "reward_window": 5} for rate in rates]
    runs = [row | curve for row, curve in zip(RUNS, curves, strict=True)]
    needed = [89.3 / rate + 1 for rate in rates]
    ratios = [needed[place] / needed[place + 4] for place in range(4)]
    assert computed("sooner", "iteration_s/0.9", runs, over="a")[0] == pytest.approx(statistics.geometric_mean(ratios))
    assert computed("reward_to_reach", "reward_mean", runs[:4] + [{**row, "configuration": "b"} for row in runs[:4]])[
        0
    ] == pytest.approx(89.3)
    frames = [20 * number for number in needed[4:]]
    value, low, high, *_ = computed("to_reward", "frames_per_iteration", runs, over="a")
    assert value == pytest.approx(statistics.geometric_mean(frames)) == pytest.approx(math.sqrt(low * high))
    lower = [20 * ((20 + 0.6 * 77) / rate + 1) for rate in rates[4:]]
    value_60 = computed("to_reward", "frames_per_iteration/0.6", runs, over="a")[0]
    assert value_60 == pytest.approx(statistics.geometric_mean(lower))
    of_one_seed = [row | {"seed": 1} for row in runs]
    assert computed("seeds", "seed", runs, over="a")[0] == 4
    assert computed("seeds", "seed", [*of_one_seed[:4], *runs[4:]], over="a")[0] == 1
    assert computed("to_reward", "frames_per_iteration", of_one_seed, over="a")[:3] == [value, None, None]
    assert computed("sooner", "iteration_s/0.9", of_one_seed, over="a")[0] is None
    equal = [row | curve for row, curve in zip(RUNS, curves[:4] * 2, strict=True)]
    assert computed("sooner", "iteration_s/0.9", equal, over="a") == [1.0, 1.0, 1.0, 8, "within noise"]
    runs[-1]["reward_mean"] = np.ones(100)
    assert computed("sooner", "iteration_s/0.9", runs, over="a") == [None, None, None, 8, None]
    assert computed("to_reward", "iteration_s", runs, over="a") == [None, None, None, 4, None]
    assert computed("reached", "iteration_s", runs, over="a") == [3.0, None, None, 4, None]
    two_sets = [*runs[:7], {**runs[4], "set": "t"}]  # whose runs have equal numbers
    assert computed("reached", "iteration_s", two_sets, over="a") == [4.0, None, None, 4, None]
    levels_off = [*runs[:7], {**runs[7], "reward_mean": np.full(100, 94.0)}]  # between 90 and 97 % of the rise
    assert [computed("reached", f"iteration_s{mark}", levels_off, over="a")[0] for mark in ("", "/0.97")] == [4.0, 3.0]


@pytest.mark.parametrize(
    ("success", "reward"),
    [
        ((None, None, None, None), 89.3),
        ((0.4, 0.8, None, None), 89.3),
        ((0.1, 0.5, 0.6, None), 89.3),  # the median decides
        ((0.4, 0.4, 0.9, None), None),
        ((0.4, 0.4, 0.9, 0.9), 89.3),
    ],
)
def test_a_training_of_which_few_episodes_succeed_has_no_reward_to_reach(
    success: Sequence[float | None], reward: float | None
) -> None:
    runs = [
        {**row, "reward_mean": np.arange(100.0) * rate, "reward_window": 5, "learned_success": own}
        for row, rate, own in zip(RUNS[4:], (1, 2, 5, 10), success, strict=True)
    ]
    assert computed("reward_to_reach", "reward_mean", runs)[0] == (reward and pytest.approx(reward))
    again = [*runs, {**runs[0], "set": "t"}]  # a seed counts once
    assert computed("reward_to_reach", "reward_mean", again)[0] == (reward and pytest.approx(reward))


def test_runs_of_one_seed_differ_by_what_is_most_in_parts_of_the_rise() -> None:
    """Rises of 10 and 20, and of 40 and 80; runs of other seeds would differ more."""
    curves = [np.array([math.nan, *np.linspace(0, rise, 6)]) for rise in (10, 20, 40, 80)]
    runs = [
        row | {"reward_mean": curve, "reward_window": 1, "seed": seed}
        for row, curve, seed in zip(RUNS, curves, (1, 1, 2, 2), strict=False)
    ]
    expected = statistics.fmean([(20 - 10) / 20, (20 - 10) / 10, (80 - 40) / 80, (80 - 40) / 40])
    assert kinds.figure("differs", "reward_mean", runs, runs, ())["value"] == pytest.approx(expected)
    assert kinds.figure("differs", "reward_mean", runs[:1], runs[1:], ())["value"] == pytest.approx(0.5)
    assert kinds.figure("differs", "reward_mean", runs[:1], runs[2:], ())["value"] is None
    rounded = runs[1] | {"reward_mean": np.array([0.1 + 0.2, 0.3])}
    assert kinds.figure("differs", "reward_mean", runs[:1], [rounded], ())["value"] is None


def test_a_product_has_an_interval_by_the_squares_of_distances_to_the_ends() -> None:
    known: dict[str, dict[str, Any]] = {
        "a/x": {"value": 2.0, "low": 1.0, "high": 4.0, "runs": 3},
        "b/y": {"value": 3.0, "low": 3.0 / math.e, "high": 3.0 * math.e**2, "runs": 4},
        "alone": {"value": 5.0, "low": None, "high": None, "runs": 1},
        "none": {"value": None, "low": None, "high": None, "runs": 2},
    }
    half = math.log(2)
    below, above = math.hypot(half, 2 * 2), math.hypot(half, 2 * 1)  # a power of -2 exchanges its ends
    expected = [2 / 9, 2 / 9 * math.exp(-below), 2 / 9 * math.exp(above), 7]
    assert [*kinds.product("a/x=1&b/y=-2", known, has_unit=True).values()] == [*map(pytest.approx, expected), None]
    assert kinds.product("a/x=1&b/y=-2", known, has_unit=False)["status"] == "within noise"
    assert kinds.product("a/x=3&b/y=3", known, has_unit=False)["status"] == "clear"
    assert [*kinds.product("a/x=1&alone=1", known, has_unit=False).values()] == [
        pytest.approx(10),
        None,
        None,
        4,
        "too few runs",
    ]
    assert [*kinds.product("a/x=1&none=1", known, has_unit=False).values()] == [None, None, None, 5, None]
    with pytest.raises(KeyError, match="unknown"):
        kinds.product("a/x=1&unknown=1", known, has_unit=True)


def test_what_somebody_printed_is_a_range_and_is_compared_for_each_gpu() -> None:
    one = {"gpus": "1", "value": "260", "least": "255", "most": "265"}
    four = {"gpus": "4", "value": "950", "least": "945", "most": "955"}
    runs = [{**row, "frames_per_s": 130 * row["iteration_s"]} for row in RUNS if row["configuration"] == "b"]

    def of(rows: list[dict[str, Any]], over: list[dict[str, str]]) -> list[Any]:
        return list(kinds.figure("published", "frames_per_s", rows, over, []).values())

    assert of([four], []) == [950, 945, 955, 0, None]
    assert of([four], [one]) == [*map(pytest.approx, (950 / 1040, 945 / 1060, 955 / 1020)), 0, None]
    mean, low, high = computed("mean", "iteration_s", RUNS)[:3]
    assert of(runs, [one]) == [*map(pytest.approx, (mean / 4, 130 * low / 2 / 265, 130 * high / 2 / 255)), 4, None]


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "reports" / "results" / "2026.11"
    write_learning(folder)
    return write_version(folder)


@pytest.fixture
def version(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original.parents[2], tmp_path, dirs_exist_ok=True)
    return tmp_path / "reports" / "results" / "2026.11"


type Rows = dict[str, dict[str, str]]  # by id
type Change = Callable[[Rows], object]


def table(version: Path) -> Rows:
    with (version / FILE).open(encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def said_of(version: Path, rows: Rows) -> list[str]:
    """What ``verify`` says once these are the rows of the file."""
    with (version / FILE).open("w", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows.values())
    write_all_hashes(version)
    return sentences(version)


def of(name: str, **fields: str) -> Change:
    return lambda rows: rows[f"{ROW}/{name}"].update(fields)


def of_another(name: str, field: str, old: str, new: str) -> Change:
    return lambda rows: rows[name].update({field: rows[name][field].replace(old, new)})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (of("frames_per_s", value="1e6"), f"{ROW}/frames_per_s.value is 1e6, expected 5"),
        (of("iteration_s", low="0.01"), "iteration_s.low is 0.01, expected 0."),
        (of("share_kept", high=""), "share_kept.high is missing, expected 0."),
        (of("over_gpus", status="within noise"), "over_gpus.status is within noise, expected clear"),
        (of("iteration_s", kind="mode"), f"{ROW}/iteration_s.kind is mode, expected mean"),
        (of("iteration_s", unit="ms"), f"{ROW}/iteration_s.unit is ms, expected s"),
        (of("iteration_s", runs="10"), "iteration_s.runs is 10, expected 3"),
        (of("iteration_s", column="iteration_50_s"), "iteration_s.column is iteration_50_s, expected iteration_s"),
        (of("iteration_s", of=f"set={SET}"), f"iteration_s.of is set={SET}, expected set={SET}&configuration={NAME}"),
        (of("iteration_s", id="best/of/all/iteration_s"), "best/of/all/iteration_s is there, expected none"),
        (of("iteration_s", value="fast"), "iteration_s.value is fast, expected 0."),
        (of("iteration_s", low="nan"), "iteration_s.low is nan, expected 0."),
        (lambda rows: rows[NODES].update(over=OTHER_TASK), f"{NODES}.over is {OTHER_TASK}, expected"),
        *((of_another(PRINTED, field, "9", "8"), f"{PRINTED}.{field} is ") for field in ("value", "of", "low")),
        *((lambda rows, name=name: rows.pop(name), f"the figure {name} is missing") for name in LEFT_OUT),
        (lambda rows: rows.update(x=rows[f"{ROW}/power_w"]), "/power_w is there twice, expected there once"),
        (
            lambda rows: rows.update(x={**rows[f"{ROW}/iteration_s"], "id": LEARNED, "of": OF_LEARNED, "value": "2.5"}),
            f"{LEARNED}.value is 2.5, expected missing",
        ),
        (of_another(f"{LEARNS}/sooner", "of", "over_gpus=1", "over_gpus=2"), f"{LEARNS}/sooner.of is "),
    ],
)  # fmt: skip
def test_a_forgery_of_the_file_is_named(version: Path, change: Change, words: str) -> None:
    change(rows := table(version))
    said = said_of(version, rows)
    assert any(words in sentence for sentence in said), said


def test_each_value_of_the_file_is_computed_again(version: Path) -> None:
    rows = table(version)
    for row in (changed := [row for row in rows.values() if float(row["value"])]):
        row["value"] = str(float(row["value"]) * 1.00001)
    said = [sentence.partition(" is ")[0] for sentence in said_of(version, rows)]
    assert {f"{FILE}: {row['id']}.value" for row in changed} <= {*said}
    assert len(changed) > 250
    of_rewards = {"reward_to_reach", "to_reward", "reached", "sooner", "product"}
    assert {row["kind"] for row in changed} >= of_rewards


def test_runs_that_shared_their_gpu_have_what_they_learned_and_no_time(version: Path) -> None:
    rows = table(version)
    learned = {name: row for name, row in rows.items() if name.startswith(LEARNING_SET)}
    assert {row["column"] for row in learned.values()} == {
        "last_reward", "seed", "peak_memory_gb", "stolen_share", "others_share", "sampler_core_share",
    }  # fmt: skip
    assert {row["over"] for row in learned.values()} == {""}
    rows.pop(name := f"{LEARNING_SET}/{ONE}-learning/last_reward")
    assert f"the figure {name} is missing" in said_of(version, rows)[0]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (",kind,", ",sort,", "the columns is id, sort, column"),
        (",median,", ",median,,", "is 12 fields, expected 11"),
        ("\n", "\xff\n", "the columns is id, kind"),
    ],
)
def test_a_table_that_is_none_is_named(version: Path, old: str, new: str, words: str) -> None:
    (version / FILE).write_bytes((version / FILE).read_text().replace(old, new, 1).encode("latin-1"))
    write_all_hashes(version)
    assert any(words in sentence for sentence in sentences(version))


def test_a_figure_that_cannot_be_computed_is_named_and_the_others_are_compared(
    version: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "KINDS", {name: kind for name, kind in kinds.KINDS.items() if name != "mean"})
    named = {finding.what for finding in verify(version).findings}
    kinds_of = {f"the figure {name}": row["kind"] for name, row in table(version).items()}
    assert {kinds_of[name] for name in named & kinds_of.keys()} == {"mean", "product"}
    assert [name for name in kinds_of if kinds_of[name] == "mean" and name not in named] == []


def test_while_records_are_rejected_figures_are_not_compared(version: Path) -> None:
    for name in (SHADOW, SMALL):
        damage(version / name, put(f"{RUN}/started_utc", "once"))
    (finding,) = (finding for finding in verify(version).findings if finding.next_step == MEND_FIRST)
    assert finding.got.startswith(f"not made: records are rejected in {SHADOW}, ")
