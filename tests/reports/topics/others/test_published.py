"""Figures of others: read with their rounding, and shown with where they are from."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from reports.analysis.analysed_set import Campaign
from reports.analysis.rows import case_rows
from reports.sets.version import read_version
from reports.topics.others import published_page as page
from reports.topics.others.published import efficiency, implied, parse_figure, read_published
from suite.errors import ReportError
from suite.schema.record import CaseResult
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import full_results, make_case, make_record, write_results


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("2.7M", 2.65e6, 2.75e6),
        ("950k", 945e3, 955e3),
        ("64k", 63.5e3, 64.5e3),
        ("896156", 896155.5, 896156.5),
    ],
)
def test_a_figure_is_the_range_that_is_rounded_to_it(text: str, low: float, high: float) -> None:
    figure = parse_figure(text)
    assert (figure.low, figure.high) == pytest.approx((low, high))


@pytest.mark.parametrize("text", ["about 3", "1,000", "2.7G", "", 5])
def test_what_is_no_figure_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="no figure"):
        parse_figure(text)


def test_efficiencies_follow_from_the_figures() -> None:
    table = next(table for table in read_published().table if table.series == "cartpole-per-gpu")
    assert [round(found[0], 2) for row in table.rows if (found := efficiency(table, row))] == [1.0, 0.86, 0.62, 0.46]


def test_isaac_labs_table_exceeds_the_ideal_in_eleven_cells_whatever_the_rounding() -> None:
    cells = [found for table in read_published().table if table.source == "isaaclab" for found in implied(table)]
    assert len(cells) == 24
    assert sum(value > 1 for value, _ in cells) == 15
    assert sum(low > 1 for _, (low, _) in cells) == 11


def test_hours_of_training_are_judged_like_rates() -> None:
    table = next(table for table in read_published().table if table.source == "pai")
    found = efficiency(table, table.rows[1])
    assert found is not None
    assert found[0] == pytest.approx(0.68, abs=0.005)
    low, high = found[1]
    assert low < 0.66
    assert high > 0.70


def test_every_table_has_a_source_with_a_date() -> None:
    published = read_published()
    assert {table.source for table in published.table} == {source.name for source in published.source}
    assert all(source.date and source.read and source.terms for source in published.source)


def test_a_table_without_a_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "published.toml"
    path.write_text('source = []\n[[table]]\nsource = "x"\ntitle = "t"\nremark = "r"\nrows = []\n')
    with pytest.raises(ReportError, match="no \\[\\[source\\]\\] is named x"):
        read_published(path)
    path.write_text('[[source]]\nname = "x"\n')
    with pytest.raises(ReportError, match="not valid"):
        read_published(path)


def test_ours_stand_beside_theirs() -> None:
    text = page.tables(committed_version()).text
    assert "R. Noroian\t4\t1,672,000\t1,208,000\t608,000\t62.3 %" in text
    assert "labscale, 4 x H200, 22 Nov 2026: few iterations\t4\t" in text
    assert "the first campaign" not in text
    assert "CPU: Intel Xeon Gold, 36 cores." in text
    assert text.count("CPU: Intel Xeon Platinum 8362 at 2.80 GHz.") == 4
    assert text.count("CPU: not stated.") == 2
    assert "15 above 100 % as printed, 11 even after" in page.above_ideal().text
    assert ": 1 implied efficiency, of which" in page.above_ideal().text


def test_an_efficiency_without_an_interval_says_of_how_many_rounds_it_is(tmp_path: Path) -> None:
    version = read_version(write_results(full_results(), tmp_path), name="v")
    lines = [line.split("\t") for line in page.tables(version).text.splitlines() if line.startswith("labscale, ")]
    last = {line[1]: line[-1] for line in lines}
    assert list(last) == ["1", "2", "4", "8"]
    assert last["1"] == "n/a"
    assert last["4"].endswith("(rounds)")
    assert last["8"] == "2 rounds"


def test_a_set_without_the_fewest_gpus_of_a_table_does_not_stand_in_it() -> None:
    """Two GPUs once had 100.0 %, next to 99.1 and 97.0 % of sets whose baseline is one GPU."""
    version = committed_version()
    (nodes,) = (one for one in version.scaling if one.name == "h200-x2-nodes")
    assert min(row.world_size for row in nodes.campaign.series("ant-weak").rows) > 1
    text = page.tables(version).text
    assert f"labscale, {nodes.title}" not in text
    assert "labscale, 4 x H200, 22 Nov 2026: one node and two simulated\t2\t" in text


def test_the_most_of_the_open_division_is_said_beside_the_table_and_is_not_in_it() -> None:
    version = committed_version()
    lines = page.tables(version).text.splitlines()
    (said,) = (line for line in lines if line.startswith("Tuned through the libraries' own settings"))
    fastest: dict[int, float] = {}
    for result in (result for one in version.scaling for result in one.campaign.results):
        case = result.case
        if (case.series, case.division, case.rl_library) == ("cartpole-open", "open", "rl_games"):  # as theirs
            fps = next(row.total_fps for row in case_rows([result]))
            fastest[result.case.world_size] = max(fastest.get(result.case.world_size, 0.0), fps or 0.0)
    assert set(fastest) == {1, 4}
    (tuned,) = (one for one in version.scaling if one.name == "h200-x4-open")
    (shipped,) = (row.total_fps for row in tuned.campaign.rows if row.case_id.endswith("-n16384-1x4"))
    assert f"where the settings as shipped make {shipped:,.0f} total FPS;" in said
    for gpus, fps in fastest.items():
        assert f"{fps:,.0f} with {gpus} GPU" in said
    assert "labscale's most with rl_games is" in said
    assert "that of The Isaac Lab Project Developers is 3,500,000 with 16 GPUs" in said
    assert not any(f"{fps:,.0f}" in line for line in lines if line != said for fps in fastest.values())


def test_a_version_without_an_open_division_says_nothing_of_it(tmp_path: Path) -> None:
    write_results(full_results(), tmp_path)
    assert "Tuned through" not in page.tables(read_version(tmp_path, name="v")).text


def test_the_figure_says_of_every_curve_of_ours_where_it_ran() -> None:
    file = read_published()
    table = next(table for table in file.table if table.series == "cartpole-per-gpu")
    source = next(source for source in file.source if source.name == table.source)
    case = make_case("cartpole-per-gpu", scaling="weak")
    ours = []
    for label, day in (("one", 21), ("another", 22)):
        record = make_record(case)
        here = replace(
            record,
            environment=replace(record.environment, host_label=label),
            started_utc=f"2026-11-{day}T08:00:00+00:00",
        )
        campaign = Campaign.from_results([CaseResult(case=case, rounds=(here,))], title=label)
        ours.append((campaign, campaign.rows))
    drawn = page.efficiencies(table, ours, source).svg
    said = " ".join(ET.fromstring(drawn).itertext())  # noqa: S314 - our own drawing
    assert "(2 CPUs), 21 Nov 2026; Generated Processor (2 CPUs), 22 Nov 2026 \u00b7 CC-BY-4.0" in said
    assert f"{source.author.partition(',')[0]}, {source.date}; labscale" in said
