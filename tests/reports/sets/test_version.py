from pathlib import Path

import pytest

from reports.sets.version import read_version
from suite.errors import ReportError
from tests.fixtures.results.generated_results import (
    full_results,
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
