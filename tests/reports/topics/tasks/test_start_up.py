"""The Start-up part of a task's page: its sentence, its tables, and where series with cold starts are shown."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reports.analysis.analysed_set import Campaign
from reports.analysis.curves import measured_for_speed
from reports.analysis.start_ups import PARTS, cold_and_warm, headline, median_parts_s, parts_s
from reports.sets.version import Version, read_version
from reports.site.topics import series_parts
from reports.topics.explore.model import points
from reports.topics.tasks import overview, page
from reports.topics.tasks.section import section
from reports.topics.tasks.start_up import parts_table, parts_title, start_up_answer
from suite.schema.record import Case, CaseResult, RlLibrary, RunRecord
from suite.statistics.intervals import mean_of, ratio_of
from suite.statistics.start_up import start_up
from tests.fixtures.results.generated_results import full_results, make_case, make_record, on_gpus, write_results

PHASES_S = {"imports_torch": 1.0, "task_config": 0.5, "simulation_launch": 0.5}


def warm_case(library: RlLibrary = "rsl_rl", **changes: Any) -> Case:
    return make_case("cartpole-start-up", rl_library=library, scaling="weak", num_envs_global=64, **changes)


def started(
    case: Case,
    index: int,
    *,
    scene_s: float,
    first_s: float,
    kernels: int | None,
    compile_s: float | None = None,
    imports_s: float = 2.0,
) -> RunRecord:
    """A round that needs 4 s before the scene, and 3 s between the scene and the first iteration."""
    record = make_record(case, index=index, iteration_time_s=first_s / 10)
    rank = record.ranks[0]
    phases_s = {**PHASES_S, "imports": imports_s, "environment_creation": scene_s}
    first, *later = (start_s for start_s in rank.samples["start_s"] if start_s is not None)
    shift_s = sum(phases_s.values()) - 1.0 + 3.0 - first
    samples = {**rank.samples, "start_s": (first + shift_s, *(start_s + shift_s for start_s in later))}
    changed = replace(
        rank, phases_s=phases_s, samples=samples, kernels_compiled=kernels, warp_compile_time_s=compile_s,
        warp_modules_compiled=None if compile_s is None else kernels,
    )  # fmt: skip
    return replace(record, ranks=(changed,))


def results_of(
    library: RlLibrary = "rsl_rl", *, rounds: int = 3, cold_first_s: float = 20.0, cold_imports_s: float = 2.0
) -> list[CaseResult]:
    """Starts of 10, 11, 12 s warm and of 36, 38, 40 s cold."""
    warm = warm_case(library)
    cold = replace(warm, case_id=f"{warm.case_id}-cold", kernel_cache="empty")
    return [
        CaseResult(
            case=cold,
            rounds=tuple(
                started(
                    cold,
                    index,
                    scene_s=9.0 + 2 * index,
                    first_s=cold_first_s,
                    kernels=54,
                    compile_s=21.0 + index,
                    imports_s=cold_imports_s,
                )
                for index in range(rounds)
            ),
        ),
        CaseResult(
            case=warm,
            rounds=tuple(
                started(warm, index, scene_s=2.0 + index, first_s=1.0, kernels=0, compile_s=0.0)
                for index in range(rounds)
            ),
        ),
    ]


def test_parts_add_up_to_the_whole_start() -> None:
    (cold, _) = results_of()
    start = start_up(cold.rounds[1])
    parts = parts_s(start)
    assert tuple(parts) == PARTS
    assert parts == pytest.approx(
        {"imports": 3.0, "settings": 0.5, "simulator": 0.5, "scene": 11.0, "preparation": 3.0, "first iteration": 20.0}
    )
    assert sum(parts.values()) == pytest.approx(start.total_s)


def test_the_sentence_has_both_with_their_intervals_what_differs_and_what_was_compiled() -> None:
    low_s, high_s = mean_of([36.0, 38.0, 40.0]).interval or (0, 0)
    warm_low_s, warm_high_s = mean_of([10.0, 11.0, 12.0]).interval or (0, 0)
    said = start_up_answer(results_of(), where="8 x Accelerator")
    assert f"38.0 s ({low_s:.1f} to {high_s:.1f})" in said
    assert f"11.0 s ({warm_low_s:#.3g} to {warm_high_s:.1f})" in said
    for part in ("first iteration (19.0 of 27.0 s)", "54 kernels", "22.0 s", "8 x Accelerator"):
        assert part in said
    (both,) = cold_and_warm(results_of())
    ratio = ratio_of([36.0, 38.0, 40.0], [10.0, 11.0, 12.0])
    assert parts_title(both).startswith(f"A cold start takes {ratio.value:.2f} (")


def test_few_starts_have_no_interval_and_say_how_many_they_are() -> None:
    said = start_up_answer(results_of(rounds=1), where="x")
    assert said.startswith("A cold start takes 36.0 s (1 start) and a warm one 10.0 s (1 start), with")


@pytest.mark.parametrize(
    ("cold_imports_s", "said"),
    [
        (2.0, "; most of the difference is in the scene (8.00 of 15.0 s)"),
        (4.0, "; the largest part of the difference is in the scene (8.00 of 17.0 s)"),
    ],
)
def test_a_part_is_most_of_the_difference_only_above_a_half(cold_imports_s: float, said: str) -> None:
    results = results_of(cold_first_s=8.0, cold_imports_s=cold_imports_s)
    assert said in start_up_answer(results, where="x")


def test_a_cold_start_that_takes_no_longer_has_no_difference_to_explain() -> None:
    cold, warm = results_of()
    alike = replace(cold, rounds=tuple(replace(record, case=cold.case) for record in warm.rounds))
    said = start_up_answer([alike, warm], where="x")
    assert said.startswith("A cold start takes 11.0 s")
    assert "difference" not in said


def test_what_is_stored_of_one_kind_only_is_called_so() -> None:
    cold, warm = results_of()
    assert start_up_answer([warm], where="x").startswith("Only warm starts are stored: one takes 11.0 s (")
    assert start_up_answer([cold], where="x").startswith("Only cold starts are stored: one takes 38.0 s (")
    other = replace(cold, case=replace(cold.case, rl_library="rl_games", case_id="cartpole-start-up/other-cold"))
    other = replace(other, rounds=tuple(replace(record, case=other.case) for record in cold.rounds))
    assert "cannot be compared" in start_up_answer([other, warm], where="x")
    unknown = CaseResult(case=warm.case, rounds=(started(warm.case, 0, scene_s=2.0, first_s=1.0, kernels=None),))
    assert "not known whether they were cold or warm" in start_up_answer([unknown], where="x")
    assert start_up_answer([CaseResult(case=warm.case)], where="x") == ""


def test_a_first_round_that_compiled_is_cold_beside_its_own_later_ones() -> None:
    case = warm_case()
    rounds = [started(case, 0, scene_s=9.0, first_s=20.0, kernels=7)]
    rounds += [started(case, index, scene_s=2.0, first_s=1.0, kernels=0) for index in (1, 2)]
    said = start_up_answer([CaseResult(case=case, rounds=tuple(rounds))], where="x")
    assert said.startswith("A cold start takes 36.0 s (1 start) and a warm one 10.0 s (2 starts)")
    assert said.endswith("; 7 kernels are compiled.")  # nobody timed Warp


def test_cold_starts_on_purpose_stand_for_their_work_and_go_before_others() -> None:
    cold, warm = results_of()
    found_some = started(warm.case, 3, scene_s=2.0, first_s=1.0, kernels=1)
    (both,) = cold_and_warm([cold, replace(warm, rounds=(*warm.rounds, found_some))])
    assert (len(both.cold), len(both.warm), both.is_designed) == (3, 3, True)
    other = warm_case("rl_games")
    by_chance = [started(other, index, scene_s=9.0, first_s=20.0, kernels=900) for index in range(5)]
    by_chance += [started(other, 5 + index, scene_s=2.0, first_s=1.0, kernels=0) for index in range(5)]
    found = cold_and_warm([CaseResult(case=other, rounds=tuple(by_chance)), cold, warm])
    best = headline(found)
    assert best is not None
    assert best.case == warm.case


def lines_of(results: Sequence[CaseResult]) -> Mapping[str, Mapping[str, str]]:
    """Start -> heading -> cell of the table of parts."""
    headings, *lines = parts_table(Campaign.from_results(results), cold_and_warm(results)).data.text.splitlines()
    cells = [dict(zip(headings.split("\t"), line.split("\t"), strict=True)) for line in lines]
    return {line["Start"]: line for line in cells}


def test_the_table_has_the_parts_of_cold_beside_warm() -> None:
    results = results_of()
    (both,) = cold_and_warm(results)
    shown = lines_of(results)
    assert list(shown) == ["Cold", "Warm"]
    for start, starts in (("Cold", both.cold), ("Warm", both.warm)):
        for part, time_s in median_parts_s(starts).items():
            assert float(shown[start][f"{part.capitalize()} in s"]) == pytest.approx(time_s, rel=0.005)
        assert shown[start]["Starts"] == "3"


def test_lines_of_several_libraries_name_them() -> None:
    names = set(lines_of([*results_of(), *results_of("rl_games")]))
    assert names == {"Cold, rsl_rl", "Warm, rsl_rl", "Cold, rl_games", "Warm, rl_games"}


def version_of(results: Sequence[CaseResult], folder: Path) -> Version:
    return read_version(write_results(on_gpus(list(results)), folder), name="v")


def test_the_part_opens_with_the_sentence_then_the_parts_then_all_cases(tmp_path: Path) -> None:
    version = version_of([*results_of(), *full_results()], tmp_path)
    (series,) = version.series("cartpole-start-up")
    text = page.start_up([series]).text
    places = [
        text.index(words)
        for words in (
            "A cold start takes 38.0 s",
            "A cold start takes 3.46 (",
            "Start\tWhole start in s",
            "Warp's compiler in s",
            "Files that the operating system keeps in memory are not dropped",
        )
    ]
    assert places == sorted(places)
    assert "<h4>" in page.start_up([series]).markup
    assert "<h5>" in page.start_up([series, series]).markup  # below the titles of the sets


def test_only_the_set_that_says_most_has_a_table_of_parts() -> None:
    many, few = (Campaign.from_results(results_of(rounds=rounds)) for rounds in (5, 4))
    for parts in ([few, many], [many, few]):
        text = page.start_up(parts).text
        assert text.count("Start\tWhole start in s") == 1
        assert page.start_up([many]).text.splitlines()[1] in text
        assert text.count("Warp's compiler in s") == 2


def test_a_series_with_cold_starts_answers_with_them_and_is_left_out_of_speeds(tmp_path: Path) -> None:
    version = version_of([*results_of(), *full_results()], tmp_path)
    (series,) = version.series("cartpole-start-up")
    assert series.kind == "start_up"
    text = section(version, "Cartpole", "cartpole-start-up", series_parts()).text
    assert text.startswith("A cold start takes 38.0 s")
    assert "Varied: whether compiled kernels are there before a round" in text
    assert {line.series for line in version.lines} == {"cartpole-strong", "ant-weak"}
    assert overview.most_frames(series.results) == ""
    assert points(version)
    assert all("start-up" not in point.key for point in points(version))
    assert measured_for_speed(full_results()) == full_results()
