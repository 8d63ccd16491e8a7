from pathlib import Path

import pytest

from reports.pages import data as downloads
from reports.pages import settings
from reports.sets.version import read_version
from suite.errors import ReportError
from tests.fixtures.results.committed_results import RESULTS, committed_version
from tests.fixtures.results.generated_results import (
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


def test_one_campaign_is_a_version_of_one_set(tmp_path: Path) -> None:
    version = read_version(write_results(on_gpus(smoke_results()), tmp_path), name="v")
    assert [one.name for one in version.sets] == [""]


def test_tuned_settings_are_told_from_scaling(tmp_path: Path) -> None:
    tuned = make_case("cartpole-strong", rl_library="rl_games", variant="tuned", division="open")
    opened = read_version(write_results(on_gpus([*smoke_results(), make_result(tuned, 0.4)]), tmp_path / "b"), name="v")
    shown = [ratio for ratio in settings.ratios(opened) if ratio.setting.column == "is_tuned"]
    assert [ratio.estimate.value for ratio in shown] == [pytest.approx(1.15)]


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


def test_the_committed_version_has_scaling_pairs_and_checks() -> None:
    version = committed_version()
    assert {"h200-x4-full"} <= {one.name for one in version.scaling}
    assert [one.name for one in version.archived] == ["h200-x4"]
    assert sum(len(one.pairs) for one in version.sets) > 26
    assert {"h200-x2"} <= {path.stem for path in (RESULTS / "env_check").glob("*.json")}


def test_data_open_with_what_there_is() -> None:
    version = committed_version()
    assert f" have every stored sample of {len(version.sets)} sets." in downloads.answer(version).text
