from pathlib import Path

import pytest

from reports import book
from reports.pages import division
from reports.result_sets import read_version
from suite.errors import ReportError
from tests.generated_results import full_results, make_case, make_result, smoke_results, write_results

COMMITTED = Path(__file__).resolve().parents[1] / "reports" / "results" / "2026.11"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, results in (("b", smoke_results()), ("a", full_results()), ("pairs", smoke_results())):
        write_results(results, tmp_path / name)
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
    version = read_version(write_results(smoke_results(), tmp_path), name="v")
    assert [one.name for one in version.sets] == [""]


def test_controls_come_after_what_they_explain(tmp_path: Path) -> None:
    control = make_case("ant-control", workload="environment_step")
    results = [make_result(control, 0.5), make_result(make_case("cartpole-strong"), 0.5)]
    version = read_version(write_results(results, tmp_path), name="v")
    assert version.series_names == ("cartpole-strong", "ant-control")


def test_a_series_of_environments_and_an_open_division_are_told_from_scaling(tmp_path: Path) -> None:
    sweep = [make_result(make_case("ant-envs", scaling="weak", num_envs_global=n), 0.5) for n in (1024, 2048)]
    tuned = make_case("cartpole-strong", rl_library="rl_games", variant="tuned", division="open")
    version = read_version(write_results([*smoke_results(), *sweep], tmp_path / "a"), name="v")
    assert [name for name in version.series_names if version.is_sweep(name)] == ["ant-envs"]
    assert not version.has_open_division
    names = book.page_sources(version)
    assert "How many environments" in names["series-ant-envs"]
    assert "How many environments" not in names["series-ant-weak"]
    opened = read_version(write_results([*smoke_results(), make_result(tuned, 0.4)], tmp_path / "b"), name="v")
    assert opened.has_open_division
    assert "division" in book.page_sources(opened)
    assert "1.15" in division.gains(opened).text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[set]]\nfolder = "nowhere"\n', "names nowhere"),
        ('[[set]]\nfolder = "a"\n[[set]]\nfolder = "a"\n', "twice"),
        ('[[set]]\nfolder = "a"\nrole = "decoration"\n', "role decoration"),
        ("[[set]]\n", "folder"),
        ("[[set\n", "report.toml"),
    ],
)
def test_a_wrong_manifest_is_named(folder: Path, text: str, said: str) -> None:
    manifest(folder, text)
    with pytest.raises(ReportError, match=said):
        read_version(folder, name="v")


def test_the_committed_version_has_scaling_pairs_and_checks() -> None:
    version = read_version(COMMITTED, name="2026.11")
    assert {"h200-x4"} <= {one.name for one in version.scaling}
    assert len(version.pairs) > 26
    assert {"h200-x2"} <= {path.stem for path in (COMMITTED / "env_check").glob("*.json")}
    assert all(report.checks for report in version.env_checks)
