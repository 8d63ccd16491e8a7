"""Once, outside the quick tests: the kit-less image is built whole, and Cartpole trains inside it with two ranks.

Debian with a copy of this Python stands for Ubuntu 24.04, because no registry is within reach; every other line of the
Dockerfile is the real one. Takes some ten minutes and 25 GB of disk.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from suite.external.container_spec import ContainerSpec
from suite.files.paths import ROOT
from suite.install.pins import sha256
from suite.launch.images.build import BuiltImage, build_image
from suite.launch.images.table import plan_build
from suite.records.store import load_results
from tests.fixtures.machines.container_engine import FORGOTTEN_SOCKETS, PYTHON_IN_DEBIAN, RunningEngine
from tests.fixtures.runs.real_runs import cartpole, matrix_of

pytestmark = [pytest.mark.slow, FORGOTTEN_SOCKETS, pytest.mark.timeout(3600)]

DISK_NEEDED_GB = 30.0
MATRIX = matrix_of(
    cartpole("rl_games", topologies=["1x2"], minibatch_size=1024), cartpole("rsl_rl", topologies=["1x2"])
)


@pytest.fixture(scope="module")
def built(running_engine: RunningEngine, debian: str, tmp_path_factory: pytest.TempPathFactory) -> BuiltImage:
    free_gb = shutil.disk_usage(tmp_path_factory.getbasetemp()).free / 1e9
    if free_gb < DISK_NEEDED_GB:
        pytest.skip(f"needs {DISK_NEEDED_GB:.0f} GB of free disk, there are {free_gb:.0f}")
    plan = plan_build("kitless", project_root=ROOT, version="0", git=(None, None), environ=dict(os.environ))
    stand_ins = {"BASE": debian, "PYTHON": PYTHON_IN_DEBIAN, "PYTHON_PACKAGES": "g++"}
    plan = replace(plan, build_args={**plan.build_args, **stand_ins})
    out_dir = tmp_path_factory.mktemp("built")
    return build_image(running_engine.engine, plan, out_dir=out_dir, network="host", on_line=print)


def test_image_passes_env_check_and_lists_what_is_in_it(built: BuiltImage) -> None:
    record = json.loads(built.record.read_text())
    verdicts = {check["name"]: check["verdict"] for check in record["env_check"]["checks"]}
    assert verdicts["worker_packages"] == "ok"  # every one as pinned
    components = {component["name"]: component for component in json.loads(built.sbom.read_text())["components"]}
    assert components["isaaclab"]["version"] == "3.0.0"
    assert components["libegl1"]["purl"].startswith("pkg:deb/debian/")


def nox(engine: RunningEngine, *words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a session by the door that a user takes."""
    environ = {**os.environ, "DOCKER_HOST": engine.url, **variables}
    command = [sys.executable, "-m", "nox", "--session", *words]
    return subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)


def test_env_check_inside_the_image_prints_what_a_person_reads(
    running_engine: RunningEngine, built: BuiltImage
) -> None:
    done = nox(running_engine, "env_check", "--", "--image", built.tag)
    warnings = [line.split()[0] for line in done.stdout.splitlines() if " warning " in line]
    assert (done.returncode, warnings) in ((0, []), (1, ["cpu_load"])), done.stdout + done.stderr  # 1: a busy host
    assert "/var/cache/labscale/worker-" in done.stdout  # the one of the image, where labscale would install it
    assert "The stack kitless can run here on cpu." in done.stdout


def test_bench_runs_in_containers_and_says_so_in_every_record(
    running_engine: RunningEngine, built: BuiltImage, tmp_path: Path
) -> None:
    """Starts bench like a user, and interrupts it; see tests/suite/campaign/test_interrupted_campaign.py."""
    matrix, out = tmp_path / "two.toml", tmp_path / "out"
    matrix.write_text(MATRIX, encoding="utf-8")
    chosen = ("--rl-library", "rsl_rl", "--launcher", "container", "--image", built.tag)
    done = nox(
        running_engine, "bench", "--", "--matrix", matrix, "--out", out, "--device", "cpu", "--no-report", *chosen,
        LABSCALE_CACHE=str(tmp_path / "cache"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (result,) = load_results(out)
    (record,) = result.completed
    assert record.image_digest == built.image_id
    assert record.environment.worker_pins_sha256 == sha256(ROOT / "containers/pins/worker.txt")
    verdicts = {check.name: check.verdict for check in record.environment.checks}
    assert verdicts["worker_packages"] == "ok"  # of the image: this machine's cache is empty
    assert running_engine.client.containers.list(all=True) == []


def test_image_holds_nothing_of_this_machine(running_engine: RunningEngine, built: BuiltImage) -> None:
    history = json.dumps(running_engine.client.images.get(built.image_id).history())
    assert "/tmp/host" not in history  # noqa: S108
    spec = ContainerSpec(image=built.image_id, argv=("sh", "-c", "id -u; ls -A /tmp"))
    assert running_engine.engine.run_to_end(spec, timeout_s=60).stdout.split() == ["1000"]
