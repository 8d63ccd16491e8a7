"""Other versions over a copy of the worker, with uv for real and wheels of a few bytes."""

import subprocess
from pathlib import Path

import pytest

from suite.errors import WorkerEnvironmentError
from suite.install import worker_packages
from suite.install.worker_packages import install_versions, unmet, versions_folder
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel

ISAACLAB = {"isaaclab_physics/__init__.py": "import newton\nassert newton.VERSION != '3.0', 'newton is too new'\n"}


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A worker whose isaaclab asks for newton 1.0 with the extra that asks for solver 1.0; an index with newer ones."""
    wheels = tmp_path / "wheels"

    def newton(version: str, solver: str) -> Path:
        return write_wheel(wheels, "newton", version, requires=[f"solver~={solver} ; extra == 'sim'"])

    isaaclab = write_wheel(wheels, "isaaclab", "3.0.0", requires=["newton[sim]==1.0"], files=ISAACLAB)
    pinned = [isaaclab, newton("1.0", "1.0"), write_wheel(wheels, "solver", "1.0")]
    python = make_environment(tmp_path / "worker-1", pinned)
    newton("2.0", "2.0")
    newton("3.0", "1.0")
    write_wheel(wheels, "solver", "2.0")
    (python.parent.parent / "complete.json").write_text("{}")
    monkeypatch.setenv("UV_FIND_LINKS", str(wheels))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setattr(worker_packages, "IMPORTED", ("isaaclab_physics",))
    return python.parent.parent


def version_of(python: Path, module: str) -> str:
    command = [str(python), "-c", f"import {module}; print({module}.VERSION)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_a_version_that_isaac_lab_does_not_ask_for_is_installed_over_a_copy_once(base: Path) -> None:
    said: list[str] = []
    packages = ["newton==2.0", "solver==2.0"]
    python = install_versions(base, packages, on_message=said.append)
    assert python == versions_folder(base, packages) / "bin" / "python"
    assert (version_of(python, "newton"), version_of(python, "solver")) == ("2.0", "2.0")
    assert version_of(base / "bin" / "python", "newton") == "1.0"
    installing, aside = said
    assert "newton==2.0, solver==2.0" in installing
    assert "isaaclab 3.0.0 needs newton[sim]==1.0" in aside
    assert install_versions(base, packages[::-1], on_message=pytest.fail) == python


@pytest.mark.parametrize(
    ("package", "said"),
    [
        ("newton==2.0", r"newton 2\.0 needs solver~=2\.0"),
        ("solver==2.0", r"newton 1\.0 needs solver~=1\.0"),
        ("newton==3.0", "AssertionError: newton is too new"),
        ("newton==9.0", r"(?s)uv .*newton==9\.0"),
    ],
)
def test_what_cannot_be_combined_is_said_and_leaves_nothing(base: Path, package: str, said: str) -> None:
    for _ in range(2):
        with pytest.raises(WorkerEnvironmentError, match=said):
            install_versions(base, [package], on_message=lambda _: None)
    assert not versions_folder(base, [package]).exists()


def test_what_another_package_does_not_take_is_refused_before_it_is_downloaded(base: Path) -> None:
    with pytest.raises(WorkerEnvironmentError, match=r"newton 1\.0 needs solver~=1\.0 and finds 99\.0"):
        install_versions(base, ["solver==99.0"], on_message=pytest.fail)  # which no index has


def test_an_interrupted_copy_is_made_again(base: Path) -> None:
    python = install_versions(base, ["newton==2.0", "solver==2.0"], on_message=lambda _: None)
    (python.parent.parent / "complete.json").unlink()
    (python.parent.parent / "left-over").touch()
    assert install_versions(base, ["newton==2.0", "solver==2.0"], on_message=lambda _: None) == python
    assert not (python.parent.parent / "left-over").exists()


def test_requirements_count_by_their_markers_and_those_of_extras_only_where_asked_for() -> None:
    installed = {
        "app": ("1", ["part[fast] >=2", "old ; python_version < '3'", "odd (>=1,<2"]),
        "part": ("1", ["wheel ; extra == 'fast'", "absent ; extra == 'docs'"]),
        "wheel": ("3", ["app >1"]),
    }
    assert list(map(str, unmet("3.12.1", installed))) == [
        "app 1 needs part[fast]>=2 and finds 1",
        "wheel 3 needs app>1 and finds 1",
    ]
    assert [str(one) for one in unmet("3.12.1", {"part": installed["part"]})] == []
