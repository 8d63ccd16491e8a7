"""Where rounds run. A real engine runs in tests/suite/launch/containers; the apptainer here is a fake.

The fake stands for a program that no Debian release has: it passes variables on as apptainer does, takes programs from
the image's folder, and runs them without any container.
"""

import gc
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from suite.errors import ContainerError, UsageError
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch import registry
from suite.launch.images.table import SUITE_PYTHON, find_image
from suite.launch.manifests import image_digest
from suite.launch.runtime import Runtime
from suite.options.options import Options
from tests.conftest import CaseMaker
from tests.fixtures.machines.container_engine import FORGOTTEN_SOCKETS
from tests.fixtures.runs.asked_options import changed, options_with
from tests.fixtures.runs.real_runs import launch_of

FAKE_APPTAINER = f"""#!{sys.executable}
import os, sys
arguments = sys.argv[2:]
options = {{"--bind": 2, "--pwd": 2}}
while arguments[0].startswith("--"):
    if arguments[0] == "--pwd":
        os.chdir(arguments[1])
    del arguments[:options.get(arguments[0], 1)]
image, program, *rest = arguments
prefix = "APPTAINERENV_"
env = {{name[len(prefix):]: value for name, value in os.environ.items() if name.startswith(prefix)}}
os.execve(image + program, [image + program, *rest], {{"PATH": os.environ["PATH"], **env}})
"""
OPTIONS = options_with(matrix="smoke", launcher="apptainer")


def provision(options: Options) -> Runtime:
    return registry.provision(options, stack="kitless", device="cpu", on_message=print, out=Path("out"))


@pytest.fixture
def apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text(FAKE_APPTAINER, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("ISAACSIM_ASSET_ROOT", raising=False)
    return program


@pytest.fixture
def image(tmp_path: Path, worker: Worker) -> Path:
    """A sandbox folder with the two Pythons that an image of labscale has."""
    folder = tmp_path / "image"
    for inside, python in (
        (find_image("kitless", ROOT).worker_python, worker.python),
        (SUITE_PYTHON, sys.executable),
    ):
        script = folder / inside.lstrip("/")
        script.parent.mkdir(parents=True)
        script.write_text(f'#!/bin/sh\nexec {python} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (OPTIONS, UsageError, "--launcher apptainer needs --image"),
        (changed(OPTIONS, image="missing.sif"), UsageError, "missing.sif does not exist. Make one: apptainer build"),
        (
            options_with(matrix="smoke", launcher="container", worker_python=Path("python")),
            UsageError,
            "Leave one of the two out",
        ),
    ],
)
def test_contradicting_options_are_refused(options: Options, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        provision(options)


def test_without_apptainer_the_way_on_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ContainerError, match="apptainer"):
        provision(changed(OPTIONS, image=str(tmp_path)))


@pytest.mark.parametrize("told", [f"sha256:{'0123456789abcdef' * 4}", None])
@pytest.mark.parametrize("launcher", ["native", "emulated"])
def test_labscale_inside_an_image_names_the_digest_that_it_was_told(
    told: str | None, launcher: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(image_digest.DIGEST, told or "")
    worker = Worker(python=Path("python"), pins_sha256=None, asset_root=None, asset_sha256=None, cache_dir=tmp_path)
    monkeypatch.setattr("suite.launch.native.launcher.provision_worker", lambda **_: worker)
    place = provision(options_with(matrix="smoke", launcher=launcher))
    assert place.image_digest == told


def test_a_digest_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(image_digest.DIGEST, "kitless:1")
    worker = Worker(python=Path("python"), pins_sha256=None, asset_root=None, asset_sha256=None, cache_dir=tmp_path)
    monkeypatch.setattr("suite.launch.native.launcher.provision_worker", lambda **_: worker)
    with pytest.raises(UsageError, match="LABSCALE_IMAGE_DIGEST is 'kitless:1', allowed is sha256:"):
        provision(options_with(matrix="smoke"))


@FORGOTTEN_SOCKETS
def test_without_an_engine_the_way_on_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(ContainerError, match="Start the engine, or set DOCKER_HOST"):
        provision(options_with(matrix="smoke", launcher="container"))
    gc.collect()


# A rank that only says where it is.
SAYS: Final = "import os, sys; open(f'{sys.argv[1]}/said-' + os.environ['RANK'], 'w').write(os.getcwd())"


@pytest.mark.worker
def test_a_round_runs_through_apptainer(
    apptainer: Path, image: Path, worker: Worker, make_case: CaseMaker, tmp_path: Path
) -> None:
    """The worker's torchrun starts both ranks."""
    assert apptainer.exists()
    place = provision(changed(OPTIONS, image=str(image)))
    assert (place.worker.pins_sha256, place.worker.asset_sha256) == (worker.pins_sha256, worker.asset_sha256)
    assert place.python_path is None
    (tmp_path / "says.py").write_text(SAYS, encoding="utf-8")
    launch = launch_of(place.worker, make_case(), tmp_path / "r0")
    *torchrun, _, _, run_dir = launch.argv  # -m tasks.worker RUN_DIR
    launch = replace(launch, argv=(*torchrun, str(tmp_path / "says.py"), run_dir))
    assert place.launch(launch).exit_code == 0
    assert [(tmp_path / "r0" / f"said-{rank}").exists() for rank in (0, 1)] == [True, True]
    assert place.check().failures == ()


@pytest.mark.worker
def test_an_image_without_env_check_is_refused(apptainer: Path, image: Path) -> None:
    assert apptainer.exists()
    (image / SUITE_PYTHON.lstrip("/")).write_text("#!/bin/sh\necho no such module >&2\nexit 3\n")
    with pytest.raises(ContainerError, match="exit code 3: the report is empty\nno such module"):
        provision(changed(OPTIONS, image=str(image))).check()
