from pathlib import Path

import pytest

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
