"""The first page: its answer, its table, its calculator; on sets with and without what they need."""

import html
import json
import re
from datetime import datetime
from pathlib import Path
from typing import Any

from reports.display.calculator import calculator
from reports.figures.tables import rows_by_id
from reports.pages import home
from reports.pages.settings import clear
from reports.sets.version import Version, read_version
from suite.files.wording import day_in_words
from suite.records.folders import PLAN_FILE
from tests.fixtures.results.committed_results import newest_version
from tests.fixtures.results.generated_results import make_case, make_result, on_gpus, write_results


def training_of(version: Version, task: str, training: str) -> dict[str, Any]:
    """What the calculator has of a training."""
    markup = calculator(home.lines(version), home.lines(version, of_rewards=True)).markup
    (data,) = re.findall(r'data-trainings="([^"]+)"', markup)
    trainings: list[dict[str, Any]] = json.loads(html.unescape(data))
    return next(shown for shown in trainings if (shown["task"], shown["training"]) == (task, training))


def test_the_calculator_has_the_figures_of_each_training() -> None:
    ant = training_of(newest_version(), "Ant", "rl_games, 1,024 per GPU")
    of_one = rows_by_id(newest_version())["h200-x4/ant-weak/rl_games-kitless-n1024-1x1/frames_per_s"]
    assert ant["rows"][0][:4] == [1, of_one["value"], of_one["low"], of_one["high"]]
    assert [row[0] for row in ant["rows"]] == [1, 2, 4]
    rows = rows_by_id(newest_version())
    names = [f"h200-x4/ant-weak/rl_games-kitless-n{1024 * gpus}-1x{gpus}/" for gpus in (1, 2, 4)]
    times_s = [rows.get(f"{name}time_to_reward_s", {"value": None})["value"] for name in names]
    assert [row[4] for row in ant["rows"]] == times_s
    assert "4 x H200, 64 vCPU, 28 Nov 2026" in ant["said"]
    seeds = min(rows[f"{name}reached"]["runs"] for name in names)
    assert f"The reward is {rows[f'{names[0]}reward_mean_to_reach']['value']:.3g} ({seeds} seed" in ant["said"]
    of_few_seeds = training_of(newest_version(), "Ant", "rsl_rl, 1,024 per GPU")
    assert [row[4:] for row in of_few_seeds["rows"]] == 3 * [[None, None, None]]
    elsewhere = training_of(newest_version(), "Cartpole", "rl_games, 4,096 per GPU")  # frames of 4 GPUs, rewards of 2
    assert [row[4] is None for row in elsewhere["rows"]] == [False, False, True]
    assert "n/a" in of_few_seeds["said"]
    assert "n/a" in elsewhere["said"]
    assert ("n/a" in ant["said"]) == (None in times_s)
    assert "Measured on 4 x H200" in elsewhere["said"]
    assert "seeds; speed: 2 x H200" in elsewhere["said"]


def test_it_was_measured_until_the_last_run_of_which_only_the_learning_counts() -> None:
    version = newest_version()
    first, *_, last = sorted(
        record.started_utc or "" for own in version.sets for record in own.campaign.completed if record.started_utc
    )
    days = f"{day_in_words(datetime.fromisoformat(first))} to {day_in_words(datetime.fromisoformat(last))}"
    assert f"measured {days} on" in home.opening(version).text


def test_the_table_says_how_many_environments_its_ratios_are_of() -> None:
    version = newest_version()
    _, frames, trainings, own, split, rewards, *_ = home.table(version).text.splitlines()
    for row, column in ((frames, "environments_per_gpu"), (trainings, "trainings_per_gpu")):
        known = sorted(clear(version, column), key=lambda ratio: ratio.estimate.value)
        for ratio in (known[0], known[-1]):
            name = ratio.subject.removesuffix(ratio.held)
            assert f"{ratio.estimate.value:.2f} ({name}, {ratio.pair.of['environments_per_gpu']:,} per" in row
            assert f"{ratio.held})" in row
            assert ratio.ends[0] in row.rpartition("times the frames of")[2]
    for row, place in ((own, "per GPU"), (split, "in total")):
        assert len(re.findall(rf"\(\w[^()]*, [\d,]+ {place}, \d+ GPUs\)", row)) == 2
    assert re.search(r"\([^()]*, [\d,]+ per GPU\)", rewards.partition(";")[0])


def test_without_several_numbers_of_gpus_there_is_no_chart_and_no_calculator(tmp_path: Path) -> None:
    write_results(on_gpus([make_result(make_case("cartpole-strong"), 0.5)]), tmp_path)
    version = read_version(tmp_path, name="v")
    assert "Cartpole with rsl_rl makes 4,096 frames per second" in home.opening(version).text
    assert home.main(version).markup == ""
    assert 'title: "How fast does this machine train?"' in home.texts(version)["index"]
    assert "unfinished" not in home.ending(version).text
    (tmp_path / PLAN_FILE).write_text(json.dumps({"configurations": {"s/a": 4}}))
    unfinished = home.ending(read_version(tmp_path, name="v")).text
    assert "1 of 1 planned configuration is not stored" in unfinished
    assert home.ending(version).text.count("reports/results of labscale") == 1
    assert home.ending(version).text.count("submit -- runs/full") == 1
