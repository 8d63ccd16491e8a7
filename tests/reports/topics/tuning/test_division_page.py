"""The page of tuned settings begins with the answer, and with the set that has the most seeds."""

from dataclasses import replace
from pathlib import Path

from reports.sets.version import read_version
from reports.topics.tuning import division_page
from tests.fixtures.results.generated_results import make_case, make_result, on_gpus, write_results


def test_the_answer_comes_first_and_then_the_most_seeds(tmp_path: Path) -> None:
    results = []
    for series, num_rounds in (("ant-tuned", 3), ("cartpole-tuned", 4)):
        shipped = make_case(series, world_size=1, scaling="weak", rl_library="rl_games", seed_per_round=True)
        tuned = replace(shipped, case_id=f"{shipped.case_id}-fast", division="open", cpu_threads=4)
        results += [make_result(shipped, *[0.5] * num_rounds), make_result(tuned, *[0.25] * num_rounds)]
    version = read_version(write_results(on_gpus(results), tmp_path), name="v")
    assert "over 4 seeds" in division_page.answer(version).text
    shown = division_page.of_version(version).text
    assert -1 < shown.index("cartpole-tuned") < shown.index("ant-tuned")


def test_no_gain_is_no_answer(tmp_path: Path) -> None:
    shipped = make_case("ant-tuned", world_size=1, scaling="weak", rl_library="rl_games")
    version = read_version(write_results(on_gpus([make_result(shipped, 0.5, 0.5, 0.5)]), tmp_path), name="v")
    assert division_page.answer(version).text == ""
