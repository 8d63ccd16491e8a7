"""The workers that cases have for themselves: where they are, and what they share with that of the stack."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import WorkerEnvironmentError
from suite.install import pins, worker_packages
from suite.install.bundle_contents import VERSIONS_VARIABLE
from suite.install.worker import (
    Worker,
    check_python,
    locate_own_worker,
    locate_worker,
    own_package_names,
    provision_own_worker,
    provision_worker,
)
from suite.install.worker_packages import digest_of, installed_in
from suite.matrix.own_worker import OwnWorker
from suite.options.options import Setup
from tests.fixtures.stand_ins.synthetic_wheels import pin, write_wheel
from tests.suite.install.conftest import NEEDED, wheels

GAMES = OwnWorker(pins="games")
SKRL = OwnWorker(packages=("skrl==2.0",))
GAMES_AND_SKRL = OwnWorker(pins="games", packages=("skrl==2.0",))
STACK = {name: version or "1.0" for name, version in NEEDED.items()}


@pytest.fixture
def base(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Worker:
    """The worker of the stack; a file of pins with another rl-games; a newer skrl on the index."""
    other = wheels(tmp_path / "wheels", {**NEEDED, "rl-games": "7.0"})
    (project / pins.PINS_DIR / "games.txt").write_text("".join(map(pin, other)))
    write_wheel(tmp_path / "wheels", "skrl", "2.0")
    write_wheel(tmp_path / "wheels", "mine", "1.0", requires=["torch"])
    monkeypatch.setattr(worker_packages, "IMPORTED", ("skrl",))
    return provision_worker(on_message=lambda _: None)


@pytest.mark.parametrize(
    ("own", "games", "skrl", "packages"),
    [
        (GAMES, "7.0", "1.0", ()),
        (SKRL, "1.0", "2.0", ()),
        (GAMES_AND_SKRL, "7.0", "2.0", ("mine",)),
    ],
)
def test_it_has_its_versions_and_kernels_and_the_assets_of_the_stack(
    base: Worker, project: Path, own: OwnWorker, games: str, skrl: str, packages: tuple[str, ...]
) -> None:
    setup = Setup(worker_packages=packages)
    stack = provision_worker(setup=setup, on_message=lambda _: None)
    worker = provision_own_worker(own, stack, setup=setup, on_message=lambda _: None)
    installed = {name: version for name, (version, _) in installed_in(worker.python)[1].items()}
    assert installed == {**STACK, "rl-games": games, "skrl": skrl, **dict.fromkeys(packages, "1.0")}
    assert worker.packages == tuple(f"{name} 1.0" for name in packages)
    name = "games" if own.pins else "worker"
    assert worker.pins_sha256 == pins.sha256(project / pins.PINS_DIR / f"{name}.txt")
    assert (worker.asset_root, worker.asset_sha256) == (base.asset_root, base.asset_sha256)
    assert (project / "runs").read_text() == "x"  # assets were built once
    assert worker.cache_dir.is_dir()
    assert worker.cache_dir != base.cache_dir
    located = locate_own_worker(own, locate_worker(setup=setup), setup=setup)
    assert replace(located, asset_sha256=worker.asset_sha256, packages=worker.packages) == worker
    assert provision_own_worker(own, stack, setup=setup, on_message=pytest.fail) == worker


@pytest.mark.parametrize("is_edited", [False, True])
def test_it_shares_files_with_a_worker_of_the_stack_that_nobody_edited(base: Worker, *, is_edited: bool) -> None:
    (shared,) = base.python.parent.parent.rglob("torch/__init__.py")
    released = shared.read_text()
    if is_edited:
        shared.write_text(f"{released}# changed")
    worker = provision_own_worker(GAMES, base, on_message=lambda _: None)
    (own,) = worker.python.parent.parent.rglob("torch/__init__.py")
    assert own.samefile(shared) is not is_edited
    assert own.read_text() == released


def test_what_pins_were_made_for_is_asked_of_a_python_that_the_user_brings(project: Path) -> None:
    (project / pins.PINS_DIR / "games.in").write_text("# why\nrl-games==7.0\nother[extra]==1\n")
    assert (own_package_names(GAMES), own_package_names(SKRL)) == (["rl-games", "other"], [])
    with pytest.raises(WorkerEnvironmentError, match="other is missing"):
        check_python(Path(sys.executable), stack="kitless", also=["other"])


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("own", [SKRL, GAMES_AND_SKRL])
def test_a_bundle_brings_versions_and_nothing_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: OwnWorker
) -> None:
    base = Worker(
        python=Path(sys.executable), pins_sha256=None, asset_root=tmp_path, asset_sha256="ab",
        cache_dir=tmp_path / "kernels",
    )  # fmt: skip
    monkeypatch.setenv(VERSIONS_VARIABLE, str(tmp_path / "versions"))
    with pytest.raises(WorkerEnvironmentError, match=r"skrl==2\.0"):
        locate_own_worker(own, base)
    python = tmp_path / "versions" / digest_of(own.packages) / "bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    located = locate_own_worker(own, base)
    assert not located.cache_dir.exists()
    worker = provision_own_worker(own, base, on_message=pytest.fail)
    assert located == worker == replace(base, python=python, cache_dir=worker.cache_dir)
    assert worker.cache_dir.is_dir()
    assert worker.cache_dir != base.cache_dir
