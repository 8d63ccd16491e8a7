import json
from dataclasses import replace
from pathlib import Path

import pytest

from reports.figures.tables import tables
from reports.sets.version import read_version
from reports.site import pages
from reports.site.topics import series_parts
from reports.topics.cost import page as choosing
from reports.topics.data import export
from reports.topics.data import page as downloads
from reports.topics.hardware import page as machines
from reports.topics.history import page as comparison
from reports.topics.tasks import curves_page as summary
from reports.topics.tasks import page as series
from reports.topics.tasks.section import section
from reports.topics.trust import limits_page as limits
from reports.topics.tuning import division_page as division
from reports.topics.tuning.division_page import has_tuned
from reports.verification.weaknesses import read_weaknesses
from suite.errors import ReportError
from tests.fixtures.results.committed_results import RESULTS, committed_version
from tests.fixtures.results.generated_results import (
    failed_result,
    full_results,
    make_case,
    make_result,
    on_gpus,
    smoke_results,
    write_results,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, results in (("b", smoke_results()), ("a", full_results()), ("pairs", smoke_results())):
        write_results(on_gpus(results), tmp_path / name)
    return tmp_path


def manifest(folder: Path, text: str) -> None:
    (folder / "report.toml").write_text(text, encoding="utf-8")


def test_the_manifest_orders_and_names_sets_and_none_is_lost(folder: Path) -> None:
    manifest(folder, '[[set]]\nfolder = "b"\ntitle = "First"\n[[set]]\nfolder = "pairs"\nrole = "clock"\n')
    version = read_version(folder, name="v")
    assert [(one.name, one.title) for one in version.sets] == [("b", "First"), ("pairs", "pairs"), ("a", "a")]
    assert [one.name for one in version.scaling] == ["b", "a"]
    assert [series.name for series in version.series("cartpole-strong")] == ["b", "a"]


def test_one_campaign_is_a_version_of_one_set(tmp_path: Path) -> None:
    version = read_version(write_results(on_gpus(smoke_results()), tmp_path), name="v")
    assert [one.name for one in version.sets] == [""]


def test_controls_come_after_what_they_explain(tmp_path: Path) -> None:
    control = make_case("ant-control", workload="environment_step")
    results = [make_result(control, 0.5), make_result(make_case("cartpole-strong"), 0.5)]
    version = read_version(write_results(on_gpus(results), tmp_path), name="v")
    assert version.series_names == ("cartpole-strong", "ant-control")


def test_a_series_of_environments_and_an_open_division_are_told_from_scaling(tmp_path: Path) -> None:
    sweep = [make_result(make_case("ant-envs", scaling="weak", num_envs_global=n), 0.5) for n in (1024, 2048)]
    tuned = make_case("cartpole-strong", rl_library="rl_games", variant="tuned", division="open")
    version = read_version(write_results(on_gpus([*smoke_results(), *sweep]), tmp_path / "a"), name="v")
    assert [name for name in version.series_names if version.kind(name) == "sweep"] == ["ant-envs"]
    assert not has_tuned(version)
    assert "How many environments" in section(version, "Ant", "ant-envs", series_parts()).text
    assert "How many environments" not in section(version, "Ant", "ant-weak", series_parts()).text
    opened = read_version(write_results(on_gpus([*smoke_results(), make_result(tuned, 0.4)]), tmp_path / "b"), name="v")
    assert has_tuned(opened)
    assert "division" in pages.page_sources(opened)
    assert "1.15" in division.of_version(opened).text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[set]]\nfolder = "nowhere"\n', "names nowhere"),
        ('[[set]]\nfolder = "a"\n[[set]]\nfolder = "a"\n', "twice"),
        ('[[set]]\nfolder = "a"\nrole = "decoration"\n', r"set\[0\]\.role: got 'decoration'"),
        ('[[set]]\nfolder = "a"\ncontributed-by = "Lab"\n', "Did you mean 'contributed_by'"),
        ('[[set]]\nfolder = "a"\ncontributed_by = ""\n', "contributed_by: got ''"),
        ('[[set]]\nfolder = "a"\nlink = "https://example.org"\n', "no contributed_by"),
        ('[[set]]\nfolder = "a"\ncontributed_by = "Lab"\nlink = "javascript:alert(1)"\n', "link: got 'javascript"),
        ("[[set]]\n", "folder"),
        ("[[set\n", "report.toml"),
    ],
)
def test_a_wrong_manifest_is_named(folder: Path, text: str, said: str) -> None:
    manifest(folder, text)
    with pytest.raises(ReportError, match=said):
        read_version(folder, name="v")


def test_a_contributed_set_is_theirs_wherever_it_is_shown(tmp_path: Path) -> None:
    write_results(on_gpus(smoke_results()), tmp_path / "lab")
    manifest(
        tmp_path,
        '[[set]]\nfolder = "lab"\ntitle = "Two desks"\ncontributed_by = "Lab & Sons"\nlink = "https://example.org/r"\n'
        'citation = "Lab 2026"\n',
    )
    version = read_version(tmp_path, name="v")
    theirs = "Two desks, contributed by Lab & Sons"
    shown = {
        "summary": summary.opening(version),
        "table": summary.answers(version),
        "charts": summary.charts(version),
        "choosing": choosing.in_short(version),
        "options": choosing.options(version),
        "series": series.cases(version.series("cartpole-strong")),
        "verdicts": series.verdicts(version.series("cartpole-strong")),
        "machines": machines.environments(version),
        "checks": machines.env_checks(version),
        "cost": machines.cost(version),
        "failures": limits.failures(version),
        "files": downloads.listing(version),
    }
    assert [name for name, part in shown.items() if theirs not in part.text] == []
    assert 'by <a href="https://example.org/r">Lab &amp; Sons</a>' in shown["table"].markup
    assert "Lab 2026" in shown["files"].text
    assert set(tables(version)["runs"]["contributor"]) == {"Lab & Sons"}
    entries = json.loads(export.github_action_benchmark(version))
    assert all(entry["extra"].endswith("; contributed by Lab & Sons") for entry in entries)


def test_the_first_page_counts_all_sets_and_says_below_each_title_where_it_ran(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_results(on_gpus(smoke_results()), tmp_path / name)
    version = read_version(tmp_path, name="v")
    (one, other) = version.scaling
    completed = [row.rounds_completed for row in one.campaign.rows if row.rounds_completed]
    cases, rounds = len(completed), sum(completed)
    assert summary.opening(version).text.startswith(f"2 sets, {2 * cases} cases, {2 * rounds} completed runs, on ")
    assert summary.set_by_set(version).text.count(f" on {one.campaign.where}: {rounds} rounds completed") == 2
    alone = replace(version, sets=(one,))
    assert f"{cases} cases in " in summary.opening(alone).text
    assert "rounds completed" not in summary.answers(alone).text
    assert summary.set_by_set(alone).text == ""
    assert other.title in summary.set_by_set(version).text


def test_of_several_sets_the_first_page_begins_with_every_curve_in_one_table() -> None:
    version = committed_version()
    rows = [line.split("\t") for line in summary.answers(version).text.splitlines()]
    curves = {(row[0], row[1]): row for row in rows if len(row) == 8}
    full = curves["ant-weak: rl_games", "4 x H200, 22 Nov 2026: one node and two simulated"]
    frames = "359,172 (299,362 to 430,932)"
    assert full[2:] == ["1, 2, 4", frames, "83.4 %", "78.5 to 88.6 %", "3, 3, 3", "within noise"]
    per_gpu = next(row for row in curves.values() if row[1].startswith("2 x H200, 23 Nov 2026: Cartpole, as many"))
    assert (per_gpu[0], per_gpu[-1]) == ("cartpole-per-gpu: rl_games", "at least 80 %")
    judged = {row[0] for row in curves.values()}
    assert not any("control" in name or "open" in name or "envs" in name for name in judged)


def test_a_set_is_compared_with_older_ones_of_the_same_people_only(tmp_path: Path) -> None:
    for name in ("1", "2"):
        write_results(on_gpus(smoke_results()), tmp_path / name / "lab")
    manifest(tmp_path / "2", '[[set]]\nfolder = "lab"\ncontributed_by = "Lab"\n')
    older = read_version(tmp_path / "1", name="1")
    version = read_version(tmp_path / "2", name="2", older=[older])
    assert "is of somebody else" in comparison.case_by_case(version).text


def test_the_committed_version_has_scaling_pairs_and_checks() -> None:
    version = committed_version()
    assert {"h200-x4-full"} <= {one.name for one in version.scaling}
    assert [one.name for one in version.archived] == ["h200-x4"]
    assert len(version.pairs) > 26
    assert {"h200-x2"} <= {path.stem for path in (RESULTS / "env_check").glob("*.json")}
    assert all(report.checks for report in version.env_checks)


def test_what_env_check_said_of_a_host_twice_is_shown_once() -> None:
    """Two campaigns there differ in the free disk space that env_check found, and in no verdict."""
    version = committed_version()
    (pairs,) = (one for one in version.sets if one.name == "h200-x2-pairs")
    assert len({place.environment.checks for place in pairs.campaign.places}) == 2
    assert machines.env_checks(version).text.count(f"{pairs.title}: {version.machine_names['H200 host G']}") == 1


def test_what_env_check_said_of_several_hosts_alike_is_shown_once() -> None:
    text = machines.env_checks(committed_version()).text
    name = committed_version().machine_names["two CPU cores"]
    versions = 2  # of env_check: the later has one check more
    assert [text.count(f"What seed {seed} learns, on two CPU cores: {name}") for seed in range(1, 6)] == [versions] * 5
    assert text.count("\nrt_cores\tnot checked") == versions


def test_limits_and_data_open_with_what_there_is() -> None:
    version = committed_version()
    rows = [row for one in version.sets for row in one.campaign.rows if row.rounds_completed]
    without = sum(row.iteration_time_interval_s is None for row in rows)
    said = limits.answer(version).text
    assert said.startswith(f"{without} of {len(rows)} cases are without an interval, ")
    assert f" have every stored sample of {len(version.sets)} sets." in downloads.answer(version).text


def test_limits_list_what_verification_finds_and_nobody_can_repair(tmp_path: Path) -> None:
    said = limits.weaknesses(committed_version()).text
    assert "h200-x4: missing in 35 of 35 completed rounds" in said
    assert "the version: missing in" in said
    listed = read_weaknesses(committed_version().folder)
    assert all(weakness.why in said and weakness.what in said for weakness in listed)
    write_results(on_gpus([make_result(make_case(), 1.0)]), tmp_path / "set")
    assert "No weakness is known" in limits.weaknesses(read_version(tmp_path, name="v")).text


def test_limits_say_which_nodes_were_emulated() -> None:
    """Fifteen rounds "ran on more than one node", of which nobody has had several with GPUs yet."""
    version = committed_version()
    several = [each for one in version.sets for each in one.campaign.completed if each.case.nnodes > 1]
    emulated = [each for each in several if each.transport is not None and each.transport.emulated]
    said = f"ran on more than one node, {len(emulated)} of them on nodes emulated on one host."
    assert said in limits.uncertain(version).text
    cases = {each.case.case_id: each.case for each in several}
    said = limits.not_run(version, list(cases.values()), "m").text
    assert (
        f"{len(cases)} have a completed round here, {len(cases)} of them on nodes emulated on one host alone;" in said
    )


def test_a_set_of_controls_has_no_empty_place_among_the_charts() -> None:
    """The page once had the set's title with nothing below it."""
    version = committed_version()
    several = [one for one in version.sets if one.name in ("h200-x4-rsl", "h200-x4-controls")]
    titles = {one.name: one.title for one in several}
    said = summary.charts(replace(version, sets=tuple(several))).markup
    assert titles["h200-x4-rsl"] in said
    assert titles["h200-x4-controls"] not in said


def test_a_twins_failed_round_is_a_failed_round(tmp_path: Path) -> None:
    """No page once showed such a round."""
    write_results(on_gpus([make_result(make_case(), 1.0, 1.0)]), tmp_path / "set")
    write_results(
        on_gpus([failed_result(make_case(variant="aa"), outcome="invalid", reason="it learned less")]),
        tmp_path / "set" / "a_a",
    )
    version = read_version(tmp_path, name="v")
    said = "2 rounds completed; also, in repeat measurements, 1 invalid."
    assert said in summary.opening(version).text  # not of the rounds that are counted before
    for shown in (limits.failures(version), series.remarks(version.series("cartpole-strong"))):
        assert "-aa\t0\tinvalid\tit learned less" in shown.text


@pytest.mark.parametrize(
    ("reason", "is_told"),
    [
        ("the budget of 3 rounds is spent: no interval of the median from 3 rounds (6 are needed)", True),
        ("the budget of 3 rounds is spent: no exact interval of the median from 3 rounds (6 are needed)", True),
        ("precise enough: the median is known to 0.4% after 6 rounds", False),
    ],
)
def test_remarks_tell_the_interval_of_an_older_rule_from_that_of_a_table(
    reason: str, *, is_told: bool, tmp_path: Path
) -> None:
    """A table shows an interval of three rounds; a stored remark says that three rounds have none."""
    write_results(on_gpus([replace(make_result(make_case(), 0.9, 1.0, 1.1), ended_because=reason)]), tmp_path / "set")
    version = read_version(tmp_path, name="v")
    assert "0.777 to 1.28" in series.throughput(version.series("cartpole-strong")).markup
    assert ("an older rule is meant" in series.remarks(version.series("cartpole-strong")).text) is is_told
