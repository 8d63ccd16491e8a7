"""The launcher ``apptainer``: the command that it is given for a launch, and rounds that it runs.

No Debian release has the program, so a fake stands for it: it passes variables on as apptainer does, takes programs
from the image's folder, and runs them without any container.
"""

import os
import stat
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from suite.errors import ContainerError, UsageError
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch import registry
from suite.launch.apptainer import ApptainerOptions, apptainer_launch, run
from suite.launch.contract import TO_ITS_END, Asked, Runtime
from suite.launch.images.table import SUITE_PYTHON, find_image
from suite.options.options import Options
from suite.schema.record import Case
from tests.conftest import CaseMaker
from tests.fixtures.runs.asked_options import changed, options_with
from tests.fixtures.runs.real_runs import launch_of
from tests.suite.launch.contract import LauncherContract, Place
from tests.suite.launch.test_container_engine import check_golden, cuda_launch

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
    return registry.runtime_of(Asked(options=options, stack="kitless", device="cpu", say=print, out=Path("out")))


@pytest.fixture
def apptainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "apptainer"
    program.parent.mkdir()
    program.write_text(FAKE_APPTAINER, encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("ISAACSIM_ASSET_ROOT", raising=False)


class TestApptainer(LauncherContract):
    @pytest.fixture
    def place(self, apptainer: None, tmp_path: Path) -> Place:
        assert apptainer is None, "the fake is on PATH"
        (tmp_path / "image").mkdir()
        (tmp_path / "image" / "python").symlink_to(sys.executable)
        options = ApptainerOptions(image=tmp_path / "image", project_root=ROOT)
        return Place(run=partial(run, options=options), python="/python", patience_s=2.0)


def test_rendered_apptainer_command(make_case: Callable[..., Case]) -> None:
    options = ApptainerOptions(
        image=Path("/images/kitless.sif"),
        project_root=Path("/data/labscale"),
        asset_root=Path("/data/cache/assets"),
        cache_dir=Path("/data/cache/kernels"),
    )
    launch = cuda_launch(make_case)
    rendered = apptainer_launch(launch, options)
    check_golden("apptainer_launch.json", {"argv": rendered.argv, "env": rendered.env})
    assert (rendered.case, rendered.run_dir, rendered.grace_s) == (launch.case, launch.run_dir, launch.grace_s)
    for folder in ("/data/a,b", "/data/a:b"):
        with pytest.raises(UsageError, match="at which Apptainer splits paths"):
            apptainer_launch(launch, replace(options, project_root=Path(folder)))
    on_cpu = apptainer_launch(replace(launch, case=make_case(device="cpu")), replace(options, accept_eula=True))
    assert "--nv" not in on_cpu.argv
    assert on_cpu.env["APPTAINERENV_ACCEPT_EULA"] == "Y"


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (OPTIONS, UsageError, "--launcher apptainer needs --image"),
        (changed(OPTIONS, image="missing.sif"), UsageError, "missing.sif does not exist. Make one: apptainer build"),
        (changed(OPTIONS, image="."), ContainerError, "apptainer"),
    ],
)
def test_what_is_missing_is_named(
    options: Options, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(error, match=message):
        provision(options)


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


# A rank that only says where it is.
SAYS: Final = "import os, sys; open(f'{sys.argv[1]}/said-' + os.environ['RANK'], 'w').write(os.getcwd())"


@pytest.mark.worker
@pytest.mark.usefixtures("apptainer")
def test_a_round_runs_through_apptainer(image: Path, worker: Worker, make_case: CaseMaker, tmp_path: Path) -> None:
    """The worker's torchrun starts both ranks."""
    place = provision(changed(OPTIONS, image=str(image)))
    assert (place.worker.pins_sha256, place.worker.asset_sha256) == (worker.pins_sha256, worker.asset_sha256)
    assert place.python_path is None
    (tmp_path / "says.py").write_text(SAYS, encoding="utf-8")
    launch = launch_of(place.worker, make_case(), tmp_path / "r0")
    *torchrun, _, _, run_dir = launch.argv  # -m tasks.worker RUN_DIR
    launch = replace(launch, argv=(*torchrun, str(tmp_path / "says.py"), run_dir))
    assert place.launch(launch, TO_ITS_END).exit_code == 0
    assert [(tmp_path / "r0" / f"said-{rank}").exists() for rank in (0, 1)] == [True, True]
    report = place.check()
    assert report.failures == ()
    assert "egl_frame" not in {check.name for check in report.checks}, "the stack renders nothing"
