"""Packages added to copies of the worker, and other versions in them, with uv for real and wheels of a few bytes."""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import UsageError, WorkerEnvironmentError
from suite.files.json_file import read_json_or_none
from suite.install import worker_packages
from suite.install.worker_packages import (
    WorkerPackage,
    add_packages,
    environment_of,
    install_versions,
    installed_in,
    read_package,
    unmet,
    versions_folder,
)
from tests.fixtures.runs.own_task_runs import committed
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, pin, use_wheels, write_wheel


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment as pinned: torch 1.0; an index that has 2.0 and the user's packages too."""
    wheels = tmp_path / "wheels"
    torch = write_wheel(wheels, "torch", "1.0")
    (tmp_path / "worker.txt").write_text(pin(torch), encoding="utf-8")
    python = make_environment(tmp_path / "worker-1", [torch])
    write_wheel(wheels, "torch", "2.0")
    write_wheel(wheels, "my-robots", "1.2", requires=["torch", "my-meshes"])
    write_wheel(wheels, "my-meshes", "0.7")
    write_wheel(wheels, "greedy", "3.0", requires=["torch>=2"])
    (python.parent.parent / "complete.json").write_text("{}")
    use_wheels(monkeypatch, tmp_path)
    return python.parent.parent


def add(base: Path, *texts: str, messages: list[str] | None = None) -> tuple[Path, tuple[str, ...]]:
    packages = [read_package(text) for text in texts]
    collected = messages if messages is not None else []
    added = add_packages(base, packages, pins_path=base.with_name("worker.txt"), on_message=collected.append)
    return environment_of(base, packages) / "bin/python", added


def test_a_requirement_is_added_to_a_copy_once(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    messages: list[str] = []
    python, named = add(base, "my-robots>=1", messages=messages)
    assert named == ("my-meshes 0.7", "my-robots 1.2")
    assert installed_in(python)[1].keys() - installed_in(base / "bin/python")[1].keys() == {"my-robots", "my-meshes"}
    (module,) = base.glob("lib/*/site-packages/torch/__init__.py")
    environment = python.parent.parent
    assert (environment / module.relative_to(base)).samefile(module)
    assert add(base, "my-robots>=1", messages=messages) == (python, named)
    assert len(messages) == 1
    for marker in ("", '{"worker_packages": ["my-robots 1.2"]}'):  # not whole, or of another labscale
        (environment / "complete.json").write_text(marker)
        (environment / "left-over").touch()
        assert add(base, "my-robots>=1") == (python, named)
        assert not (environment / "left-over").exists()
    before = iter([None])  # another process completes it after the first look
    monkeypatch.setattr(worker_packages, "read_json_or_none", lambda *asked: next(before, read_json_or_none(*asked)))
    (environment / "in-use").touch()
    assert add(base, "my-robots>=1") == (python, named)
    assert (environment / "in-use").exists()


def test_a_package_that_needs_another_version_of_a_pinned_one_is_refused(base: Path) -> None:
    for _ in range(2):  # and what is there then is not taken for complete
        with pytest.raises(WorkerEnvironmentError, match=r"(?s)greedy.*torch"):
            add(base, "greedy==3.0")


def test_the_order_of_packages_is_nothing_and_their_content_is(base: Path, tmp_path: Path) -> None:
    first, second = (read_package(text) for text in ("my-robots", "greedy==3.0"))
    assert environment_of(base, [first, second]) == environment_of(base, [second, first])
    assert environment_of(base, [first]) != environment_of(base, [read_package("my-robots==1.2")])
    wheel = write_wheel(tmp_path / "own", "mine", "1.0")
    before = read_package(str(wheel))
    write_wheel(tmp_path / "own", "mine", "1.0", files={"mine/more.py": ""})
    assert environment_of(base, [before]) != environment_of(base, [read_package(str(wheel))])


def test_a_wheel_is_named_with_its_hash_or_the_commit_that_it_is_of_now(base: Path, tmp_path: Path) -> None:
    wheel = read_package(str(write_wheel(tmp_path / "own", "mine", "1.0")))
    assert add(base, wheel.argument)[1] == (f"mine 1.0 (sha256:{wheel.content[:12]})",)
    later = replace(wheel, origin="commit abc")
    again = add_packages(base, [later], pins_path=base.with_name("worker.txt"), on_message=pytest.fail)
    assert again == ("mine 1.0 (commit abc)",)


# ---- folders ----


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "my extension"
    (folder / "mine").mkdir(parents=True)
    (folder / "pyproject.toml").write_text("[project]\n", encoding="utf-8")
    (folder / "mine" / "__init__.py").write_text("A = 1\n", encoding="utf-8")
    return folder


def read_twice(folder: Path) -> tuple[WorkerPackage, WorkerPackage]:
    """Read it before and after a build, with what that leaves there."""
    first = read_package(str(folder))
    for name in ("build/lib/mine/__init__.py", "mine.egg-info/PKG-INFO", "mine/__pycache__/a.pyc", ".venv/pyvenv.cfg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name, encoding="utf-8")
    return first, read_package(str(folder))


def test_a_folder_without_git_is_known_by_its_files(folder: Path) -> None:
    first, again = read_twice(folder)
    assert again == first
    assert str(first.origin).startswith("sha256:")
    (folder / "mine" / "__init__.py").write_text("A = 2\n", encoding="utf-8")
    assert read_package(str(folder)).content != first.content


def test_a_commit_is_named_while_the_folder_is_at_it(folder: Path) -> None:
    name = committed(folder)
    first, again = read_twice(folder)
    assert again == first
    assert first.origin == f"commit {name[:12]}"
    (folder / "mine" / "new.py").touch()
    assert str(read_package(str(folder)).origin).startswith("sha256:")
    (folder / "mine" / "new.py").unlink()
    (folder / "mine" / "__init__.py").write_text("A = 2\n", encoding="utf-8")
    changed = read_package(str(folder))
    assert str(changed.origin).startswith("sha256:")
    assert changed.content != first.content


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{folder}/mine", "a folder without any of pyproject.toml"),
        ("{folder}/nowhere", "neither a package's folder, nor a wheel, nor a requirement"),
        ("git+https://example.org/mine", "neither a package's folder"),
    ],
)
def test_what_is_no_package_is_refused_with_what_is_allowed(folder: Path, text: str, what: str) -> None:
    with pytest.raises(UsageError, match=rf"(?s){what}.*my-robots @ git\+https"):
        read_package(text.format(folder=folder))


# ---- other versions ----


ISAACLAB = {"isaaclab_physics/__init__.py": "import newton\nassert newton.VERSION != '3.0', 'newton is too new'\n"}


@pytest.fixture
def newton_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
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
    use_wheels(monkeypatch, tmp_path)
    monkeypatch.setattr(worker_packages, "IMPORTED", ("isaaclab_physics",))
    return python.parent.parent


def test_a_version_that_isaac_lab_does_not_ask_for_is_installed_over_a_copy_once(newton_worker: Path) -> None:
    messages: list[str] = []
    packages = ["newton==2.0", "solver==2.0"]
    python = install_versions(newton_worker, packages, on_message=messages.append)
    assert python == versions_folder(newton_worker, packages) / "bin" / "python"
    versions = {name: version for name, (version, _) in installed_in(python)[1].items()}
    assert versions == {"isaaclab": "3.0.0", "newton": "2.0", "solver": "2.0"}
    assert installed_in(newton_worker / "bin" / "python")[1]["newton"][0] == "1.0"
    installing, aside = messages
    assert "newton==2.0, solver==2.0" in installing
    assert "isaaclab 3.0.0 needs newton[sim]==1.0" in aside
    assert install_versions(newton_worker, packages[::-1], on_message=pytest.fail) == python
    (python.parent.parent / "complete.json").unlink()  # an interrupted copy is made again
    (python.parent.parent / "left-over").touch()
    assert install_versions(newton_worker, packages, on_message=lambda _: None) == python
    assert not (python.parent.parent / "left-over").exists()


@pytest.mark.parametrize(
    ("package", "message"),
    [
        ("newton==2.0", r"newton 2\.0 needs solver~=2\.0"),
        ("solver==2.0", r"newton 1\.0 needs solver~=1\.0"),
        ("newton==3.0", "AssertionError: newton is too new"),
        ("newton==9.0", r"(?s)uv .*newton==9\.0"),
        ("solver==99.0", r"newton 1\.0 needs solver~=1\.0 and finds 99\.0"),  # no index has it, and uv is not asked
    ],
)
def test_what_cannot_be_combined_is_said_and_leaves_nothing(newton_worker: Path, package: str, message: str) -> None:
    with pytest.raises(WorkerEnvironmentError, match=message):
        install_versions(newton_worker, [package], on_message=lambda _: None)
    assert not versions_folder(newton_worker, [package]).exists()


def test_requirements_count_by_their_markers_and_those_of_extras_only_where_asked_for() -> None:
    installed = {
        "app": ("1", ["part[fast] >=2", "old ; python_version < '3'", "odd (>=1,<2"]),
        "part": ("1", ["wheel ; extra == 'fast'", "absent ; extra == 'docs'"]),
        "wheel": ("3", ["app >1"]),
    }
    assert sorted(unmet("3.12.1", installed)) == [
        "app 1 needs part[fast]>=2 and finds 1",
        "wheel 3 needs app>1 and finds 1",
    ]
    assert unmet("3.12.1", {"part": installed["part"]}) == set()
