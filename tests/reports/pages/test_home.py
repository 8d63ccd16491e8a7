"""The first page: its answer, its calculator, its cards; on sets with and without what they need."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.scaling.answer import advice
from reports.analysis.scaling.lines import Line, Mode, Point
from reports.analysis.time_to_reward import TimeToReward
from reports.display.calculator import FRAMES, calculator
from reports.pages import home, one_size
from reports.sets.manifest import Contributor
from reports.sets.version import Version, read_version
from suite.files.paths import ROOT
from suite.schema.record import CaseResult
from suite.statistics.intervals import Estimate
from tests.fixtures.results.committed_results import RESULTS as COMMITTED
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import (
    full_results,
    make_case,
    make_result,
    on_gpus,
    write_results,
)


def version_of(results: list[CaseResult], folder: Path) -> Version:
    return read_version(write_results(results, folder), name="v")


def line(*speedups: float, mode: Mode = "own", runs: int = 3, gpu: str = "H200", machine: str = "one") -> Line:
    """A line over 1, 2, 4 … GPUs, whose single GPU makes 1,000 frames per second."""
    points = tuple(
        Point(
            case=make_case(world_size=2**index),
            gpus=2**index,
            fps=Estimate(value=1000 * speedup, interval=None),
            speedup=Estimate(value=speedup, interval=(speedup - 0.1, speedup + 0.1) if runs > 2 else None),
            runs=runs,
        )
        for index, speedup in enumerate((1.0, *speedups))
    )
    return Line(
        task="Ant",
        library="rsl_rl",
        mode=mode,
        num_envs=1024,
        machine=machine,
        gpu=gpu,
        versions={},
        series="ant",
        points=points,
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([line(1.9, 3.8)], ("4 GPUs", "3.8 times", " 5 % more GPU-hours")),
        ([line(4.1 / 2, 4.1)], ("4.1 times", "no more GPU-hours")),
        ([line(1.5, 2.0), line(1.6, 2.5)], ("2.0 to 2.5 times", "60 to 100 % more GPU-hours")),
        ([line(0.8, runs=1)], ("Use one GPU", "0.8 times", "150 % more GPU-hours", "too few runs")),
    ],
)
def test_the_advice_weighs_frames_per_second_against_gpu_hours(given: list[Line], words: tuple[str, ...]) -> None:
    said = advice(given)
    assert [word for word in words if word not in said] == []


def with_rewards(given: Line, *seconds: float) -> Line:
    """``given`` with runs that reached a reward of 5 after so many seconds on each number of GPUs."""
    points = [
        replace(
            point,
            to_reward=TimeToReward(
                reward=5.0,
                round_times_s={index: value * (1 + 0.01 * index) for index in range(3)},
                round_iterations={},
                time_s=value,
                interval_s=None,
            ),
        )
        for point, value in zip(given.points, seconds, strict=True)
    ]
    return replace(given, points=tuple(points))


@pytest.mark.parametrize(
    ("seconds", "falls"), [((20.0, 30.0), "does not fall"), ((20.0, 10.0), "falls"), ((20.0, 19.9), "does not surely")]
)
def test_the_calculator_has_the_time_to_a_reward_beside_the_hours_of_frames(
    seconds: tuple[float, float], falls: str
) -> None:
    shown = calculator([with_rewards(line(1.9), *seconds)])
    assert f"came after 20.0 s on 1 GPU and {seconds[1]:.1f} s on 2 GPUs (1 seed), which {falls}" in shown.text
    assert "<td>20.0</td><td>3</td></tr>" in shown.markup
    assert "A reward" not in calculator([line(1.9)]).text


def test_the_calculator_offers_frames_from_one_million_to_one_billion() -> None:
    script = (ROOT / "book" / "theme" / "assets" / "calculator.js").read_text(encoding="utf-8")
    amounts = [float(number) for number in re.findall(r"\[(1e\d+|3e\d+), ", script)]
    (most, at) = re.findall(r'type="range" min="0" max="(\d)" step="1" value="(\d)"', calculator([line(1.9)]).markup)[0]
    assert (amounts[0], amounts[-1], len(amounts)) == (1e6, 1e9, int(most) + 1)
    assert amounts[int(at)] == FRAMES


def test_the_calculator_gives_hours_of_one_machine_or_their_range_over_several() -> None:
    markup = calculator([line(2.0), line(1.0, machine="other"), line(4.0, mode="split")]).markup
    rows = re.findall(r'<tr data-key="([^"]+)">.*?<th scope="row">(\d+)</th>(.*?)</tr>', markup)
    shown = {
        (json.loads(key.replace("&quot;", '"'))["environments"], int(gpus)): re.sub("<[^>]+>", " ", cells).split()
        for key, gpus, cells in rows
    }
    hours = FRAMES / 1000 / 3600
    assert shown["1,024 on each GPU", 1] == [f"{hours:.1f}"] * 3 + ["n/a", "3", "+", "3"]
    assert shown["1,024 on each GPU", 2][:3] == [f"{hours / 2:.1f}", "to", f"{hours:.1f}"]
    assert shown["1,024 in all", 2] == ["6.94", f"{hours / 2:.1f}", f"{hours / 2:.1f}", "n/a", "3"]
    per_frame = [float(value) for value in re.findall(r'data-per-frame="([^"]+)"', markup)]
    assert hours / FRAMES == pytest.approx(per_frame[0], rel=1e-4)


def test_a_machine_is_a_line_and_says_whose_it_is(tmp_path: Path) -> None:
    version = version_of(full_results(), tmp_path)
    found = version.lines
    assert {(each.task, each.library, each.mode) for each in found} == {
        (task, library, mode) for task, mode in (("Cartpole", "split"), ("Ant", "own")) for library in LIBRARIES
    }
    assert all([point.gpus for point in each.points] == [1, 2, 4, 8] for each in found)
    assert all(each.points[-1].speedup.interval for each in found if each.library == "rsl_rl")
    theirs = replace(version.sets[0], contributor=Contributor(name="Lab", link=None))
    assert all(each.machine.endswith(", by Lab") for each in replace(version, sets=(theirs,)).lines)


def test_alike_machines_of_one_day_are_told_apart_in_the_calculator_and_speed_ups(tmp_path: Path) -> None:
    for label, hour in (("a", 10), ("b", 14)):
        write_results([at(result, label=label, hour=hour) for result in full_results()], tmp_path / label)
    version = read_version(tmp_path, name="v")
    names = {machine.name for machine in version.machines}
    assert len({name.removesuffix(", 10:00").removesuffix(", 14:00") for name in names}) == 1
    assert {each.machine for each in version.lines} == names
    assert "The range is over 2 machines: " in calculator(version.lines).markup
    assert len([each for each in version.lines if each.mode == "split"]) == len(names) * len(LIBRARIES)


def at(result: CaseResult, *, label: str, hour: int) -> CaseResult:
    """The same on a machine of this label, from this hour on."""
    rounds = [
        replace(
            record,
            environment=replace(record.environment, host_label=label),
            started_utc=record.started_utc and record.started_utc.replace("T10", f"T{hour}"),
        )
        for record in result.rounds
    ]
    return replace(result, rounds=tuple(rounds))


LIBRARIES = ("rl_games", "rsl_rl")


@pytest.fixture(scope="module")
def newest() -> Version:
    return read_version(COMMITTED.parent / "2026.12", name="2026.12", older=[committed_version()])


def test_the_first_page_says_what_to_do_in_frames_and_in_reward(newest: Version) -> None:
    said = home.opening(newest).text
    assert "measured 26 to 30 November 2026 on NVIDIA H100 80GB HBM3 and NVIDIA H200" in said
    assert "Start with one GPU and fill it: more environments on it make 2.2 to 7.6 times the frames." in said
    assert "4 GPUs make 3.12 (2.92 to 3.32) times the frames of one (Ant, rsl_rl, 1,024 per GPU)" in said
    assert "the reward that all reach comes after 24 s on 1, 20 s on 2 and 21 s on 4 (1 seed)" in said


def test_the_table_has_a_row_for_each_wish_and_the_worst_curve_too(newest: Version) -> None:
    rows = [line.split("\t") for line in home.table(newest).text.splitlines()[1:]]
    assert len(rows) == 5
    fixed = next(row for row in rows if "fixed number" in row[0])
    assert fixed[1] == "use one GPU, unless frames are worth more than GPU-hours"
    assert "Cartpole, rsl_rl, 4 GPUs: 0.80 (0.73 to 0.87) times the frames" in fixed[2]
    assert rows[-1][3] == "1 seed each: too few to say"


def test_the_chart_has_every_curve_of_all_versions_once(newest: Version) -> None:
    shown = home.main(newest)
    assert shown.markup.count('<figure class="vega-figure"') == 1
    assert 'class="calculator"' in shown.markup
    assert "Shadow Hand with camera, rsl_rl, 512 per GPU, 4 GPUs: 0.98" in shown.text
    assert "Cartpole, rsl_rl, 8,192 in total, 4 GPUs: 0.20" in shown.text


def test_a_release_is_judged_with_what_would_have_been_seen(newest: Version) -> None:
    said = home.releases(newest).text
    assert re.search(r"None of 12 comparisons shows a slower one\. A loss of \d+% would have been seen in each\.", said)
    assert home.releases(committed_version()).text == ""


def test_bibtex_has_the_month_of_the_last_run(tmp_path: Path) -> None:
    cited = home.citation(version_of(full_results(), tmp_path)).text
    assert cited.endswith(
        "@misc{labscale-v,\n  author = {{The labscale authors}},\n"
        "  title = {How {Isaac Lab} training scales, report v},\n"
        "  version = {v},\n  year = {2026},\n  month = nov\n}"
    )


def test_bibtex_of_nothing_that_ran_has_no_month(tmp_path: Path) -> None:
    cited = home.citation(replace(version_of(full_results(), tmp_path), sets=())).text
    assert cited.endswith("  year = {n.d.}\n}")


def test_without_several_numbers_of_gpus_there_is_no_chart_and_no_calculator(tmp_path: Path) -> None:
    version = version_of(on_gpus([make_result(make_case("cartpole-strong"), 0.5)]), tmp_path)
    assert "Cartpole with rsl_rl makes 4,096 frames per second" in home.opening(version).text
    assert home.main(version).markup == ""


def test_one_gpu_opens_with_its_frames_its_place_and_what_would_raise_them() -> None:
    published = committed_version()
    (own,) = (one for one in published.sets if one.name == "h200-ant-sweep")
    made, where, environments, core = one_size.sentences(replace(published, sets=(own,)), [published])
    assert "85,868 (67,516 to 109,208) frames per second" in made
    assert "65,536 in place of 1,024 made 5.46 (4.82 to 6.19) times" in environments
    assert "more than 6 of 6 published machines with the same GPUs and packages would make with its CPU cores" in where
    assert "(73,008 to 85,194), and its range overlaps theirs" in where
    assert [*map(int, re.findall(r"\d+", core))] == [6, 10, 9, 107, 201, 211]
    assert "85,868" in home.opening(replace(published, sets=(own,))).text
    assert one_size.sentences(replace(published, sets=(own,)), [])[1:] == [environments]  # of its own sweep
