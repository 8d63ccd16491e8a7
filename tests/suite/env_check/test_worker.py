"""A worker environment and an asset root on disk, with faults made in them."""

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from suite.env_check import worker
from suite.env_check.gpu import nccl
from suite.env_check.worker import WorkerFacts, judge_asset_root, judge_worker_packages, site_folders
from tests.fixtures.stand_ins.denied_folders import deny
from tests.fixtures.stand_ins.synthetic_wheels import write_wheel

PINS = """\
# Made by `nox -s pins`: do not edit.
isaaclab==3.0.0 \\
    --hash=sha256:aa
ruamel-yaml==0.18.6 ; python_version >= '3.8' \\
    --hash=sha256:bb
pywin32==1.0 ; sys_platform == 'win32' \\
    --hash=sha256:cc
torch==2.11.0 \\
    --hash=sha256:dd
"""
NEEDED = {"isaaclab": "3.0.0", "torch": None}
CHANGED: Final = 'VERSION = "2.11.1"\n'  # a module of torch, as long as before


class Environment:
    """A virtual environment's folder, whose Python cannot be started: nothing may try to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.packages = folder / "lib/python3.12/site-packages"
        self.pins = folder.parent / "pins.txt"
        self.pins.write_text(PINS)
        self.python = folder / "bin" / "python"
        self.python.parent.mkdir(parents=True)
        self.python.write_text("this is no program")
        self.set_version("3.12.1")
        (folder / "complete.json").write_text("{}")
        for name, version in (("isaaclab", "3.0.0"), ("ruamel.yaml", "0.18.6"), ("torch", "2.11.0")):
            self.install(name, version)

    def set_version(self, version: str, **settings: str) -> None:
        lines = [f"version_info = {version}", *(f"{key} = {value}" for key, value in settings.items())]
        (self.folder / "pyvenv.cfg").write_text("\n".join(lines) + "\n")

    def install(self, name: str, version: str) -> None:
        self.uninstall(name)
        shutil.unpack_archive(write_wheel(self.folder.parent / "wheels", name, version), self.packages, "zip")

    def uninstall(self, name: str) -> None:
        for folder in self.packages.glob(f"{name}-*.dist-info"):
            shutil.rmtree(folder)

    def facts(self, *, is_own: bool = False, also: Sequence[Path] = (), **environ: str) -> WorkerFacts:
        return worker.read_worker(
            self.python, is_own=is_own, pins_path=self.pins, needed=NEEDED, environ=environ, also=also
        )


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "worker")


Change = Callable[[Environment], object]


def version(name: str, wanted: str) -> Change:
    return lambda environment: environment.install(name, wanted)


def without(name: str) -> Change:
    return lambda environment: environment.uninstall(name)


def file(name: str, text: str | None) -> Change:
    def change(environment: Environment) -> None:
        path = environment.packages / name
        path.unlink() if text is None else path.write_text(text)

    return change


@pytest.mark.parametrize("is_own", [False, True])
@pytest.mark.parametrize(
    ("change", "fault", "found", "own_verdict"),
    [
        (lambda _: None, None, "3 of 3 as wanted", "ok"),
        (without("ruamel.yaml"), "packages_missing", "ruamel-yaml is missing, not 0.18.6", "warning"),
        (version("torch", "2.9.0"), "packages_differ", "torch is 2.9.0, not 2.11.0", "warning"),
        (without("torch"), "packages_missing", "torch is missing", "failure"),
        (version("isaaclab", "2.3.2"), "packages_differ", "isaaclab is 2.3.2, not 3.0.0", "failure"),
        (file("torch/__init__.py", CHANGED), "packages_changed", "torch: torch/__init__.py was changed", "warning"),
        (file("isaaclab/__init__.py", None), "packages_changed", "isaaclab/__init__.py is missing", "warning"),
        (file("sitecustomize.py", "import os\n"), "packages_changed", "py belongs to no package", "warning"),
        (file("mine.pth", "/elsewhere\n"), "packages_changed", "mine.pth belongs to no package", "warning"),
    ],
)
def test_a_worker_is_not_as_it_was_installed(
    environment: Environment, change: Change, fault: str | None, found: str, own_verdict: str, is_own: bool
) -> None:
    change(environment)
    check = judge_worker_packages(environment.facts(is_own=is_own))
    assert (check.verdict, check.fault) == (own_verdict if is_own or not fault else "failure", fault)
    assert found in check.found
    assert fault is None or ("--worker-python" if is_own else "Remove") in (check.repair or "")


def test_a_file_of_another_worker_is_not_as_installed(environment: Environment, tmp_path: Path) -> None:
    other = Environment(tmp_path / "other")
    (other.packages / "torch/__init__.py").write_text(CHANGED)
    check = judge_worker_packages(environment.facts(also=[other.python]))
    assert (check.verdict, check.fault) == ("failure", "packages_changed")


@pytest.mark.parametrize("module", ["torch/__init__.py", "torch.py"])
def test_a_package_is_imported_from_elsewhere(environment: Environment, tmp_path: Path, module: str) -> None:
    path = tmp_path / "mine" / module
    path.parent.mkdir(parents=True)
    path.write_text("")
    check = judge_worker_packages(environment.facts(PYTHONPATH=str(tmp_path / "mine")))
    assert (check.verdict, check.fault) == ("failure", "packages_elsewhere")
    assert f"torch is imported from {tmp_path / 'mine' / 'torch'}" in check.found
    assert judge_worker_packages(environment.facts(PYTHONPATH=str(tmp_path))).verdict == "ok"


@pytest.mark.parametrize(
    ("wheel", "file", "release"),
    [
        (None, None, None),
        ("6.2.0.0", None, "6.2.0.0"),
        (None, "5.1.0-rc.19+release.26219\n", "5.1.0"),
        ("6.2.0.0", "5.1.0", "6.2.0.0"),
        (None, "not known", None),
    ],
)
def test_the_release_of_isaac_sim(
    environment: Environment, tmp_path: Path, wheel: str | None, file: str | None, release: str | None
) -> None:
    if wheel:
        environment.install("isaacsim", wheel)
    if file:
        (tmp_path / "VERSION").write_text(file)
    facts = worker.read_worker(
        environment.python, is_own=True, pins_path=None, needed={}, environ={}, isaac_sim_version=tmp_path / "VERSION"
    )
    assert facts.isaac_sim == release


def test_what_another_user_keeps_to_himself_is_not_there(
    environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deny(monkeypatch, tmp_path)
    assert judge_worker_packages(environment.facts()).verdict == "not_checked"
    assert judge_worker_packages(environment.facts(is_own=True)).fault == "worker_python_missing"
    assert worker.read_assets(tmp_path / "assets", is_own=False).state == "missing"
    assert nccl.read_nccl(environment.python, environ={}).fault == "worker_missing"


WHOLE: Final = WorkerFacts(
    python="/worker/bin/python", exists=True, is_own=False, is_complete=True, python_version="3.12",
    num_wanted=3, num_installed=3, differences=(), unusable=(),
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "verdict", "fault"),
    [
        ({}, "ok", None),
        ({"exists": False}, "not_checked", None),  # the first bench installs it
        ({"exists": False, "is_own": True}, "failure", "worker_python_missing"),
        ({"is_complete": False}, "not_checked", None),
        ({"is_own": True, "num_installed": 0}, "not_checked", None),  # Isaac Sim's python.sh has its own prefix
        ({"python_version": "3.11"}, "failure", "python_version"),
        ({"python_version": "3.11", "is_own": True, "num_installed": 0}, "failure", "python_version"),
    ],
)
def test_a_worker_that_cannot_be_used_as_it_is(changes: dict[str, Any], verdict: str, fault: str | None) -> None:
    check = judge_worker_packages(replace(WHOLE, **changes))
    assert (check.verdict, check.fault) == (verdict, fault)


def test_what_is_there_is_read(environment: Environment, tmp_path: Path) -> None:
    environment.set_version("3.11.9")
    (environment.folder / "complete.json").unlink()
    facts = environment.facts()
    assert (facts.exists, facts.is_complete, facts.python_version) == (True, False, "3.11")
    script = tmp_path / "isaac-sim/python.sh"  # a script with a prefix of its own
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    facts = worker.read_worker(script, is_own=True, pins_path=None, needed=NEEDED, environ={})
    assert (facts.exists, facts.is_complete, facts.num_installed) == (True, True, 0)


def test_packages_of_pythonpath_come_first(environment: Environment, tmp_path: Path) -> None:
    first = Environment(tmp_path / "bundle")
    first.install("isaaclab", "3.0.1")
    facts = environment.facts(is_own=True, PYTHONPATH=str(first.packages))
    assert [difference.found for difference in facts.differences] == ["3.0.1"]


def test_the_base_s_packages_count_where_the_environment_says_so(environment: Environment, tmp_path: Path) -> None:
    base = Environment(tmp_path / "base")
    environment.set_version("3.12.1", home=str(base.folder / "bin"))
    assert list(site_folders(environment.python, {})) == [environment.packages]
    settings = {"home": str(base.folder / "bin"), "include-system-site-packages": "true"}
    environment.set_version("3.12.1", **settings)
    assert list(site_folders(environment.python, {})) == [environment.packages, base.packages]


def test_a_linked_python_without_an_environment_is_followed(tmp_path: Path) -> None:
    real = tmp_path / "usr/bin/python3.12"
    packages = tmp_path / "usr/lib/python3/dist-packages"
    other = tmp_path / "usr/lib/python3.11/dist-packages"
    for path in (real.parent, packages, other, tmp_path / "bin"):
        path.mkdir(parents=True, exist_ok=True)
    real.touch()
    link = tmp_path / "bin/python3"
    link.symlink_to(real)
    assert list(site_folders(link, {})) == [packages]


@pytest.fixture
def asset_root(tmp_path: Path) -> Path:
    root = tmp_path / "assets"
    files = {}
    for name, stand_in in (("Isaac/ant.usd", "Newton's"), ("Isaac/cartpole.usd", None)):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        digest = hashlib.sha256(name.encode()).hexdigest()
        files[name] = {"sha256": digest, "origin": "made for this test", "stand_in": stand_in}
    manifest = {"format": 1, "sources": {}, "files": files, "facts": {}}
    (root / "manifest.json").write_text(json.dumps(manifest))
    return root


@pytest.mark.parametrize("is_own", [False, True])
def test_faults_of_assets(asset_root: Path, is_own: bool) -> None:
    whole = judge_asset_root(worker.read_assets(asset_root, is_own=is_own))
    assert (whole.verdict, len(whole.evidence.manifest_sha256)) == ("ok", 64)
    assert whole.found == f"2 files in {asset_root}, 1 of them stand-ins"
    (asset_root / "Isaac/ant.usd").write_text("another ant")
    changed = judge_asset_root(worker.read_assets(asset_root, is_own=is_own))
    assert (changed.verdict, changed.fault) == ("failure", "assets_changed")
    assert "Isaac/ant.usd" in changed.found
    (asset_root / "Isaac/cartpole.usd").unlink()
    missing = judge_asset_root(worker.read_assets(asset_root, is_own=is_own))
    assert (missing.fault, missing.evidence.missing) == ("assets_missing", ("Isaac/cartpole.usd",))
    for text in ("{", '{"format": 2, "files": {}}', '{"format": 1}', "[]"):
        (asset_root / "manifest.json").write_text(text)
        invalid = judge_asset_root(worker.read_assets(asset_root, is_own=is_own))
        assert (invalid.verdict, invalid.fault) == ("failure", "manifest_invalid")
    for check in (changed, missing, invalid):
        assert ("ISAACSIM_ASSET_ROOT" if is_own else "Remove") in (check.repair or "")


@pytest.mark.parametrize(("is_own", "way_out"), [(False, "set LABSCALE_CACHE"), (True, "unset ISAACSIM_ASSET_ROOT")])
def test_assets_that_another_user_keeps_to_himself(
    asset_root: Path, monkeypatch: pytest.MonkeyPatch, is_own: bool, way_out: str
) -> None:
    deny(monkeypatch, asset_root / "Isaac")
    check = judge_asset_root(worker.read_assets(asset_root, is_own=is_own))
    assert (check.verdict, check.fault) == ("failure", "assets_unreadable")
    assert f"cannot be read: {asset_root}/Isaac/" in check.found
    assert way_out in (check.repair or "")


@pytest.mark.parametrize(
    ("name", "is_own", "verdict", "fault"),
    [
        (None, False, "not_checked", None),
        ("https://example.org/Assets/Isaac/6.2", True, "not_checked", None),
        ("gone", False, "not_checked", None),
        ("gone", True, "failure", "asset_root_missing"),
        ("empty", True, "not_checked", None),
    ],
)
def test_places_without_a_manifest(
    name: str | None, is_own: bool, verdict: str, fault: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    check = judge_asset_root(worker.read_assets(name, is_own=is_own))
    assert (check.verdict, check.fault) == (verdict, fault)
