from pathlib import Path

from reports.display import all_curves as at_a_glance
from reports.display.html import Html
from reports.sets.version import read_version
from reports.topics.tasks.verdict_table import predictions, rule, serial_fractions, verdicts
from suite.schema.record import Case, CaseResult
from tests.fixtures.results.generated_results import failed_result, make_case, make_result, on_gpus, write_results


def amdahl(serial_fraction: float, world_size: int) -> float:
    """Seconds per iteration where one rank takes 1."""
    return serial_fraction + (1 - serial_fraction) / world_size


def results(*world_sizes: int) -> list[CaseResult]:
    return [
        make_result(
            make_case("cartpole-strong", world_size=size), *(amdahl(0.2, size) * jitter for jitter in (1, 1, 1))
        )
        for size in world_sizes
    ]


def cells_of(table: Html) -> dict[str, str]:
    heading, row = (line.split("\t") for line in table.text.splitlines())
    return dict(zip(heading, row, strict=True))


def test_a_curve_gets_its_verdict() -> None:
    cells = cells_of(verdicts(results(1, 2, 4)))
    assert cells["Curve"].startswith("cartpole-strong: ")
    assert cells["Verdict"] == "below 80 %"
    assert cells["Efficiency"] == "62.5 % (62.5 % to 62.5 %) at 4"


def test_the_serial_fraction_of_every_number_of_ranks_is_said() -> None:
    table, words = serial_fractions(results(1, 2, 4))
    _, *rows = (line.split("\t")[1:] for line in table.text.splitlines())
    assert rows == [["2", "20.0 % (20.0 % to 20.0 %)"], ["4", "20.0 % (20.0 % to 20.0 %)"]]
    assert "by Karp and Flatt" in words.text
    crashed = failed_result(make_case("cartpole-strong", world_size=8), outcome="crashed", reason="x")
    assert "8\tnone: it has no completed round" in serial_fractions([*results(1, 2), crashed])[0].text


def test_a_weak_curve_has_no_serial_fraction() -> None:
    weak = [make_result(make_case("ant-weak", world_size=size, scaling="weak"), 1.0, 1.0, 1.0) for size in (1, 2)]
    assert serial_fractions(weak) == []
    assert serial_fractions(results(1)) == []


def test_a_prediction_says_how_wrong_its_law_was() -> None:
    cells = cells_of(predictions(results(1, 2, 4)))
    case = make_case("cartpole-strong", world_size=8)
    assert (cells["Law"], cells["Serial fraction"]) == ("Amdahl", "20.0 % (20.0 % to 20.0 %)")
    assert cells["Predicted for ranks"] == "8"
    assert cells["Predicted total FPS"] == f"{case.frames_per_iteration / amdahl(0.2, 8):,.0f}"
    assert cells["Off by at the largest"].removeprefix("-").removeprefix("+") == "0.0 % at 4"


def test_more_ranks_that_were_skipped_or_failed_move_no_prediction() -> None:
    more = make_case("cartpole-strong", world_size=8)
    skipped, crashed = (failed_result(more, outcome=outcome, reason="x") for outcome in ("skipped", "crashed"))
    said = predictions(results(1, 2, 4)).text
    assert predictions([*results(1, 2, 4), skipped]).text == said
    assert predictions([*results(1, 2, 4), crashed]).text == said
    assert verdicts([*results(1, 2, 4), skipped]).text == verdicts(results(1, 2, 4)).text
    assert cells_of(verdicts([*results(1, 2, 4), crashed]))["Verdict"] == "failed"  # it was tried


def test_the_rule_has_the_limits_of_the_verdicts() -> None:
    assert "on which side of 80%" in rule().text
    assert "above 102%" in rule().text


def test_without_a_second_number_of_ranks_nothing_is_said() -> None:
    assert verdicts(results(1)).text == (
        "No case ran with more than one number of ranks, so nothing can be said of scaling."
    )


def test_what_cannot_be_predicted_says_why() -> None:
    assert cells_of(predictions(results(1, 2)))["Law"].startswith("none: measured for 1, 2 ranks only")


def efficiency_at_a_glance(folder: Path, *of_ranks: CaseResult) -> list[str]:
    """Frames per second, efficiency and verdict."""
    write_results(on_gpus(of_ranks), folder / "set")
    (row,) = at_a_glance.curves(read_version(folder, name="v")).text.splitlines()[1:-1]
    cells = row.split("\t")
    return [cells[3], cells[4], cells[-1]]


def test_the_first_table_has_the_efficiency_of_the_ranks_whose_frames_it_has(tmp_path: Path) -> None:
    """The table once had the efficiency of the ranks of the verdict, next to the frames of the most ranks."""
    one, two, four = (make_case("cartpole-strong", world_size=size) for size in (1, 2, 4))
    done = [make_result(one, *[0.8] * 3), make_result(two, *[0.3] * 3)]

    def frames(case: Case, time_s: float) -> str:
        fps = f"{case.frames_per_iteration / time_s:,.0f}"
        return f"{fps} ({fps} to {fps})"

    ideal = efficiency_at_a_glance(tmp_path / "a", *done, make_result(four, *[0.21] * 3))
    assert ideal == [frames(four, 0.21), "95.2 %", "above ideal"]
    failed = efficiency_at_a_glance(tmp_path / "b", *done, failed_result(four, outcome="crashed", reason="x"))
    assert failed == [frames(two, 0.3), "133.3 %", "above ideal"]
