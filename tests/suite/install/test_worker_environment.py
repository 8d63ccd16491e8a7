import os
import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.errors import UsageError, WorkerEnvironmentError
from suite.external.program import answer_of
from suite.files.cache import cache_root
from suite.install import pins
from suite.install import worker as provision
from suite.install.worker import Worker, locate_worker, provision_worker
from suite.options.options import Setup
from suite.records.redaction import public
from suite.schema.record import Stack
from tests.fixtures.stand_ins.synthetic_wheels import make_environment, write_wheel
from tests.suite.install.conftest import NEEDED, wheels

pytestmark = pytest.mark.usefixtures("project")


def provide(messages: list[str] | None = None, *, stack: Stack = "kitless", **setup: Any) -> Worker:
    collected = messages if messages is not None else []
    return provision_worker(stack=stack, setup=Setup(**setup), on_message=collected.append)


def test_worker_is_installed_once_and_reused(tmp_path: Path) -> None:
    messages: list[str] = []
    worker = provide(messages)
    assert [message.split()[0] for message in messages] == ["Installing", "Building"]
    assert worker.pins_sha256 == pins.sha256(provision.worker_pins("kitless"))
    assert worker.python.is_relative_to(tmp_path / "cache" / f"worker-{worker.pins_sha256[:12]}")
    assert worker.cache_dir.is_dir()
    folders = list(worker.python.parent.parent.glob("lib/python*/site-packages"))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert {path.stat().st_nlink for path in files} == {1}  # hard links into uv's cache would change with it
    messages.clear()
    assert provide(messages) == worker
    assert messages == []
    assert locate_worker() == replace(worker, asset_sha256=None)


def test_packages_of_the_user_are_in_a_copy_with_kernels_and_assets_of_the_pins(tmp_path: Path) -> None:
    mine = str(write_wheel(tmp_path / "own", "mine", "1.0", requires=["torch"]))
    plain, with_mine = provide(), provide(worker_packages=(mine,))
    assert with_mine.python != plain.python
    assert replace(with_mine, python=plain.python, packages=()) == plain
    assert (plain.packages, [name.partition(" (sha256:")[0] for name in with_mine.packages]) == ((), ["mine 1.0"])
    assert locate_worker(setup=Setup(worker_packages=(mine,))).python == with_mine.python


def test_an_install_that_was_interrupted_is_done_again_and_an_edited_file_of_uvs_cache_is_refused(
    tmp_path: Path,
) -> None:
    worker = provide()
    environment = worker.python.parent.parent
    (environment / "complete.json").unlink()
    (environment / "leftover").touch()
    assert provide() == worker
    assert not (environment / "leftover").exists()
    shutil.rmtree(environment)
    (kept,) = (tmp_path / "uv-cache").rglob("torch/__init__.py")
    kept.write_text('VERSION = "2.0"\n')  # as long as before
    with pytest.raises(WorkerEnvironmentError, match="uv cache clean torch"):
        provide()
    assert not environment.exists()


def test_failed_install_is_not_complete_and_names_what_uv_says(tmp_path: Path) -> None:
    (tmp_path / "wheels" / "torch-1.0-py3-none-any.whl").unlink()
    with pytest.raises(WorkerEnvironmentError, match="UV_DEFAULT_INDEX"):
        provide()
    assert not list((tmp_path / "cache").glob("worker-*/"))
    write_wheel(tmp_path / "wheels", "torch", "1.0", files={"torch/other.py": "changed on the index"})
    with pytest.raises(WorkerEnvironmentError, match=r"(?i)hash mismatch"):
        provide()


def test_concurrent_calls_install_once(project: Path) -> None:
    messages: list[str] = []
    with ThreadPoolExecutor() as pool:
        first, *others = (pool.submit(provide, messages) for _ in range(3))
    assert {other.result() == first.result() for other in others} == {True}
    assert sum(message.startswith("Installing") for message in messages) == 1
    assert (project / "runs").read_text() == "x"


def test_what_cannot_be_installed_is_said_before_anything_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="--worker-package /nowhere"):
        provide(worker_packages=("/nowhere",))
    with pytest.raises(WorkerEnvironmentError, match="--worker-python"):
        provide(stack="isaacsim")
    monkeypatch.setattr(provision, "INSTALL_DISK_GB", 1e7)
    with pytest.raises(WorkerEnvironmentError, match=r"10000000 GB.*LABSCALE_CACHE"):
        provide()
    assert not list((tmp_path / "cache").glob("worker-*/bin"))
    (tmp_path / "file").touch()
    monkeypatch.setenv("LABSCALE_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(WorkerEnvironmentError, match=r"file/cache.* LABSCALE_CACHE"):
        provide()


def test_own_python_is_checked_and_kept(tmp_path: Path) -> None:
    python = make_environment(tmp_path / "own", wheels(tmp_path / "wheels"))
    worker = provide(worker_python=python)
    assert (worker.python, worker.pins_sha256) == (python, None)
    assert not list((tmp_path / "cache").glob("worker-*"))
    assert locate_worker(setup=Setup(worker_python=python)) == replace(worker, asset_sha256=None)
    for other in (tmp_path / "nowhere", Path("/bin/false")):  # a plan needs no Python that works
        planned = locate_worker(setup=Setup(worker_python=other))
        assert (planned.python, planned.cache_dir.name) == (other, "kernels-own")


def test_own_python_without_what_is_needed_names_all_of_it(tmp_path: Path) -> None:
    versions = {**NEEDED, "isaaclab": "2.3.2"}
    del versions["gym"], versions["skrl"]
    python = make_environment(tmp_path / "own", wheels(tmp_path / "old", versions))
    with pytest.raises(WorkerEnvironmentError) as caught:
        provide(worker_python=python)
    listed = [line.removeprefix("  - ") for line in str(caught.value).splitlines() if line.startswith("  - ")]
    assert listed == ["isaaclab is 2.3.2, needed is 3.0.0", "gym is missing", "skrl is missing"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "does not exist"),
        ("exit 3", "exit code 3: it said nothing"),
        ("echo out; echo no such stack >&2; exit 3", "exit code 3: no such stack"),
        ("""echo '{"python": "3.12.1", "versions": {}}'""", 'exit code 0: {"python": "3.12.1", "versions": {}}'),
        ("cat", "exit code 0: it said nothing"),
    ],
)
def test_what_is_no_python_is_named_with_what_it_said(tmp_path: Path, script: str | None, message: str) -> None:
    python = tmp_path / "python"
    if script is not None:
        python.write_text(f"#!/bin/sh\n{script}\n")
        python.chmod(0o755)
    with pytest.raises(WorkerEnvironmentError, match=rf"^The worker's Python {python} .*{re.escape(message)}"):
        provide(worker_python=python)


def test_a_python_may_print_at_its_start_and_end(tmp_path: Path) -> None:
    """A wrapper prints before it, ``sitecustomize`` in it, and something after it: the answer is that of the code."""
    (tmp_path / "sitecustomize.py").write_text("import atexit\nprint('[]', end='')\natexit.register(print, '{}')\n")
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "{{}}"; PYTHONPATH={tmp_path} {sys.executable} "$@"; echo "{{}}"\n')
    python.chmod(0o755)
    assert answer_of(python, "import sys; answer = sys.argv[1:]", "a", "b c") == ["a", "b c"]


def test_assets_that_fail_leave_nothing_and_are_built_again_when_their_sources_change(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for build, message in (
        ("import os, sys; os.mkdir(sys.argv[1]); sys.exit('no such mesh')", r"exit code 1(.|\n)*no such mesh"),
        ("import os, sys; os.mkdir(sys.argv[1])", "could not build the offline assets, exit code 0"),  # no manifest
    ):
        with monkeypatch.context() as patch:
            patch.setattr(provision, "BUILD_ASSETS", ("-c", build))
            with pytest.raises(WorkerEnvironmentError, match=message):
                provide()
        assert not [path for path in (tmp_path / "cache").glob("assets-*") if path.suffix != ".lock"]
    first = provide()
    assert first.asset_root is not None
    assert first.asset_sha256 == pins.sha256(first.asset_root / "manifest.json")
    (project / "tasks" / "assets.py").write_text("changed")
    assert provide().asset_root != first.asset_root
    assert (project / "runs").read_text() == "xx"


def test_assets_of_the_user_are_taken_if_they_are_asked_for_or_offline_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = provide(assets="official")
    assert (worker.asset_root, worker.asset_sha256) == (None, None)  # Isaac Lab's own
    assert locate_worker(setup=Setup(assets="official")) == worker
    bundled = cache_root() / "bundled"  # where labscale builds its own
    bundled.mkdir()
    monkeypatch.setenv("ISAACSIM_ASSET_ROOT", str(bundled))
    assert provide(assets="official").asset_root == bundled
    assert provide().asset_root == locate_worker().asset_root != bundled
    (bundled / "manifest.json").write_text("{}")
    worker = provide()
    assert (worker.asset_root, worker.asset_sha256) == (bundled, pins.sha256(bundled / "manifest.json"))
    (bundled / "manifest.json").rename(bundled / "ant.usd")  # between two looks at it
    with pytest.raises(WorkerEnvironmentError, match="ISAACSIM_ASSET_ROOT"):
        provision.with_assets(worker, "offline", pytest.fail)
    assert (bundled / "ant.usd").exists()


def test_the_cache_is_where_the_user_wants_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, root in (
        ("LABSCALE_CACHE", tmp_path),
        ("XDG_CACHE_HOME", tmp_path / "labscale"),
        ("HOME", tmp_path / ".cache" / "labscale"),
    ):
        with monkeypatch.context() as patch:
            patch.delenv("LABSCALE_CACHE", raising=False)
            patch.delenv("XDG_CACHE_HOME", raising=False)
            patch.setenv(name, str(tmp_path))
            assert cache_root() == root
    for name in ("LABSCALE_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 12345)  # as `docker run --user 12345` starts it
    with pytest.raises(WorkerEnvironmentError, match=r"12345.*LABSCALE_CACHE"):
        cache_root()
    monkeypatch.setenv("LABSCALE_CACHE", "/cache")
    assert public("/cache/worker") == "CACHE/worker"
