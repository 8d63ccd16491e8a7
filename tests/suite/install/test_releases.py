"""The releases of a package, with uv for real and wheels of a few bytes."""

import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from suite.errors import WorkerEnvironmentError
from suite.install.pins import releases
from tests.fixtures.stand_ins.synthetic_wheels import write_wheel

PYTHON = Path(sys.executable)


@pytest.fixture(autouse=True)
def _index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in ("0.9.0", "1.0.0", "1.9.0", "1.10.0", "1.11.0rc1", "2.0.0"):
        write_wheel(tmp_path / "wheels", "newton", version, requires=["solver"])  # which is not there, nor asked for
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))


@pytest.mark.parametrize(
    ("within", "found"),
    [
        ("==1.*", ["1.0.0", "1.9.0", "1.10.0"]),
        (">=0.9.0,<=1.9.0", ["0.9.0", "1.0.0", "1.9.0"]),
        ("", ["0.9.0", "1.0.0", "1.9.0", "1.10.0", "2.0.0"]),
    ],
)
def test_releases_are_in_order_and_without_those_before_a_release(within: str, found: list[str]) -> None:
    assert releases("newton", SpecifierSet(within), PYTHON) == found


def test_where_there_is_none_the_error_says_how_to_list_them() -> None:
    with pytest.raises(WorkerEnvironmentError, match=r"no release newton==7\.\*\. .*--bisect newton==1\.6\.0,1\.6\.1"):
        releases("newton", SpecifierSet("==7.*"), PYTHON)


def test_an_index_that_does_not_answer_is_no_end_of_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV_OFFLINE")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")  # where nothing listens
    with pytest.raises(WorkerEnvironmentError, match="newton"):
        releases("newton", SpecifierSet("==1.*"), PYTHON)
