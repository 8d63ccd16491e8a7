"""Sets of a version: in which order, under which titles, and what is no manifest."""

from pathlib import Path

import pytest

from reports.sets.version import read_version
from suite.errors import ReportError
from tests.fixtures.results.generated_results import full_results, on_gpus, smoke_results, write_results


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, results in (("b", smoke_results()), ("a", full_results()), ("pairs", smoke_results())):
        write_results(on_gpus(results), tmp_path / name)
    return tmp_path


def test_the_manifest_orders_and_names_sets_and_none_is_lost(folder: Path) -> None:
    text = '[[set]]\nfolder = "b"\ntitle = "First"\n[[set]]\nfolder = "pairs"\nrole = "clock"\n'
    (folder / "report.toml").write_text(text)
    version = read_version(folder, name="v")
    assert [(own.name, own.title) for own in version.sets] == [("b", "First"), ("pairs", "pairs"), ("a", "a")]
    assert [own.name for own in version.scaling] == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "cause"),
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
def test_a_wrong_manifest_is_named(folder: Path, text: str, cause: str) -> None:
    (folder / "report.toml").write_text(text)
    with pytest.raises(ReportError, match=cause):
        read_version(folder, name="v")
