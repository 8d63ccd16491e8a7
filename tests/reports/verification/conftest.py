"""A version that is forged in many ways: written once, copied for each."""

import shutil
from pathlib import Path

import pytest

from tests.fixtures.results.forged_version import write_version


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_version(tmp_path_factory.mktemp("original") / "reports" / "results" / "2026.11")


@pytest.fixture
def version(original: Path, tmp_path: Path) -> Path:
    shutil.copytree(original.parents[2], tmp_path, dirs_exist_ok=True)
    return tmp_path / "reports" / "results" / "2026.11"
