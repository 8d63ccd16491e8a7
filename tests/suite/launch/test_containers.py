"""The launcher ``container`` against a real engine. Most programs are shell scripts in a busybox image."""

import functools
import multiprocessing
import os
import signal
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import docker
import psutil
import pytest

from suite.env_check.request import Request
from suite.errors import ContainerError, WorkerEnvironmentError
from suite.external.container_spec import OWNER_LABEL, ContainerSpec, ImageFacts
from suite.external.docker_engine import Engine, is_gone, owner_label, remove_abandoned
from suite.files.paths import ROOT
from suite.launch import containers, registry
from suite.launch.containers import (
    ContainerOptions,
    provision_in_container,
    run,
)
from suite.launch.contract import TO_ITS_END, Asked, RunControl
from suite.launch.images import build
from suite.launch.images.table import PINS_LABEL, PYTHON_LABEL, pack
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Case, Environment, Launch
from tests.fixtures.machines.container_engine import BUSYBOX, FORGOTTEN_SOCKETS, PYTHON_IN_DEBIAN, RunningEngine
from tests.fixtures.machines.container_runs import MakeScript, RunBusybox, log_of
from tests.fixtures.runs.asked_options import options_with
from tests.fixtures.runs.real_runs import marked_processes
from tests.fixtures.runs.simulated_campaign import records, run_all
from tests.fixtures.runs.turning_ranks import CASES, TurningHost, turning_campaign
from tests.suite.launch.contract import LauncherContract, Place

pytestmark = FORGOTTEN_SOCKETS


class TestContainer(LauncherContract):
    @pytest.fixture
    def place(self, engine: Engine, running_engine: RunningEngine, debian: str) -> Place:
        """Each run has a connection of its own, as each labscale has."""

        def run_anew(launch: Launch, control: RunControl) -> LaunchResult:
            return run_connected(running_engine.url, debian, launch, control, project_root=ROOT)

        return Place(run=run_anew, python=PYTHON_IN_DEBIAN, begin_again=lambda: remove_abandoned(engine))


def run_connected(url: str, image: str, launch: Launch, control: RunControl, *, project_root: Path) -> LaunchResult:
    with closing(docker.DockerClient(base_url=url)) as client:
        engine = Engine(client)
        options = ContainerOptions(project_root=project_root)
        return run(launch, control, engine=engine, image=engine.find_image(image), options=options)


def test_a_signal_is_passed_on(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    assert run_busybox(make_script("kill -9 $$")).exit_code == -signal.SIGKILL


def test_project_is_read_only(run_busybox: RunBusybox, make_script: MakeScript, mounted_project: Path) -> None:
    launch = make_script(f"cd {mounted_project}; ls; touch new; true")
    assert run_busybox(launch).exit_code == 0
    assert "source.py\n" in log_of(launch)
    assert "Read-only file system" in log_of(launch)


def test_stacks_are_dumped_by_those_who_handle_the_signal_alone(
    run_busybox: RunBusybox, make_script: MakeScript
) -> None:
    launch = make_script(
        """
(trap 'echo my stack' USR1; sleep 99 & while true; do wait; done) &
trap 'echo goodbye; exit 5' TERM
wait
""",  # nothing is started later: a child has its parent's handlers until it is another program
        hang_timeout_s=1.0,
    )
    result = run_busybox(launch)
    assert (result.ended_by, result.exit_code) == ("hung", 5)
    assert log_of(launch) == "my stack\ngoodbye\n"  # without a handler SIGUSR1 would have ended it


def test_memory_limit_is_told(
    run_busybox: RunBusybox, make_script: MakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = containers.container_spec
    monkeypatch.setattr(containers, "container_spec", lambda *a, **b: replace(plain(*a, **b), memory_bytes=50_000_000))
    result = run_busybox(make_script("tail /dev/zero"))
    assert result.out_of_memory
    assert result.exit_code != 0


def test_shared_memory_is_the_hosts_or_of_the_size_asked_for(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    launch = make_script("df -k /dev/shm | tail -1 | awk '{print $2}'")
    run_busybox(launch)
    host = os.statvfs("/dev/shm")  # noqa: S108
    assert int(log_of(launch)) == host.f_blocks * host.f_frsize // 1024
    run_busybox(launch, shm_gb=0.25)
    assert int(log_of(launch)) == 256 * 1024


def test_results_belong_to_the_caller(running_engine: RunningEngine, make_case: Callable[..., Case]) -> None:
    """Run as a user who is not root, in a child process, against the same engine."""
    socket = Path(running_engine.url.removeprefix("unix://"))
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to others
    os.chown(folder, 1000, 1000)
    socket.chmod(0o666)
    for parent in socket.parents:
        if parent.stat().st_mode & 0o1 == 0:
            parent.chmod(parent.stat().st_mode | 0o1)
    launch = Launch(
        case=make_case(), round=0, argv=("/bin/sh", "-c", f"id -u; echo $HOME; touch {folder}/r0/written"), env={},
        run_dir=str(folder / "r0"),
    )  # fmt: skip
    child = multiprocessing.get_context("fork").Process(target=run_as_user, args=(running_engine.url, launch, folder))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert {path.stat().st_uid for path in folder.rglob("*")} == {1000}
    assert log_of(launch) == "1000\n/tmp\n"


def run_as_user(url: str, launch: Launch, folder: Path) -> None:
    os.setgid(1000)
    os.setuid(1000)
    run_connected(url, BUSYBOX, launch, TO_ITS_END, project_root=folder)


def test_a_container_that_does_not_end_is_reported(engine: Engine) -> None:
    spec = ContainerSpec(image=BUSYBOX, argv=("sh", "-c", "echo so far; sleep 3600"))
    with pytest.raises(ContainerError, match=r"0\.5 s .*\nso far"):
        engine.run_to_end(spec, timeout_s=0.5)


def test_a_program_for_a_container_that_has_ended_is_not_run(engine: Engine) -> None:
    with engine.container(ContainerSpec(image=BUSYBOX, argv=("true",))) as container:
        container.start()
        while container.exit_code(wait_s=0.05) is None:
            pass
        container.execute(("true",))
        container.stop(1.0)
        assert container.exit_code(wait_s=0) == 0


# Containers of a labscale that was killed


def test_container_of_a_dead_owner_is_removed_and_others_are_left(
    engine: Engine, running_engine: RunningEngine
) -> None:
    host, *_ = owner_label()[OWNER_LABEL].split(" ")
    with subprocess.Popen(["sleep", "60"]) as owner:
        dead = f"{host} {owner.pid} {psutil.Process(owner.pid).create_time():.2f}"
        owner.kill()
    labels = (dead, owner_label()[OWNER_LABEL], "another-host 1 2.00")
    assert [is_gone(label) for label in labels] == [True, False, False]
    create = running_engine.client.containers.create
    create(BUSYBOX, ["true"], name="of-the-dead", labels={OWNER_LABEL: dead})
    others = [create(BUSYBOX, ["true"], name="mine", labels=owner_label()), create(BUSYBOX, ["true"], name="foreign")]
    assert remove_abandoned(engine) == ["of-the-dead"]
    assert {container.name for container in running_engine.client.containers.list(all=True)} == {"mine", "foreign"}
    for container in others:
        container.remove()


# GPUs, by the stand-in for NVIDIA's toolkit

LOOK = """
echo $NVIDIA_VISIBLE_DEVICES
cat /etc/vulkan/icd.d/nvidia_icd.json /usr/share/glvnd/egl_vendor.d/10_nvidia.json; nvidia-smi; true
"""


def test_the_launcher_asks_for_graphics_too_and_hides_gpus_that_it_does_not_ask_for(
    run_busybox: RunBusybox, make_script: MakeScript
) -> None:
    launch = make_script(LOOK)
    run_busybox(launch, gpus="all")
    libraries, gpus = ("libGLX_nvidia.so.0", "libEGL_nvidia.so.0"), "GPU 0: stand-in\nGPU 1: stand-in\n"
    assert [text for text in (*libraries, gpus) if text not in log_of(launch)] == []
    run_busybox(launch, gpus=("1",))
    assert ("GPU 1: stand-in\n" in log_of(launch), "GPU 0" in log_of(launch)) == (True, False)
    run_busybox(launch)
    assert (log_of(launch).startswith("void\n"), "GPU" in log_of(launch)) == (True, False)


# What is refused, none of which leaves a container


def test_program_that_the_image_does_not_have(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    launch = replace(make_script(""), argv=("/opt/nothing/python", "-m", "torch.distributed.run"))
    with pytest.raises(ContainerError, match=r"cannot start /opt/nothing/python: .*not found"):
        run_busybox(launch)


def test_start_that_fails_leaves_no_container(engine: Engine, run_busybox: RunBusybox, make_script: MakeScript) -> None:
    with pytest.raises(ContainerError, match="nvidia-smi -L"):
        run_busybox(make_script(""), gpus=("7",))
    assert engine.owners() == {}


# The worker of an image: who it belongs to, and its assets, built inside

# Stands for the worker's Python: called as `python -m tasks.assets FOLDER`.
PYTHON = """#!/bin/sh
[ -e "$PYTHONPATH/refuse" ] && { echo 'no such wheel' >&2; exit 3; }
mkdir "$3" && echo "{\\"by\\": \\"$(id -u)\\"}" > "$3/manifest.json"
"""
DOCKERFILE = f"""
FROM {BUSYBOX}
COPY python /opt/python
RUN chmod 755 /opt/python
USER 1000
"""


@pytest.fixture
def image(engine: Engine) -> ImageFacts:
    files = {"Dockerfile": DOCKERFILE.encode(), "python": PYTHON.encode()}
    labels = {PYTHON_LABEL: "/opt/python", PINS_LABEL: "ab" * 32}
    return engine.find_image(engine.build(pack(files), build_args={}, labels=labels, on_line=lambda _: None))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project" / "tasks").mkdir(parents=True)
    (tmp_path / "project" / "tasks" / "assets.py").write_text("")
    monkeypatch.setenv("LABSCALE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("ISAACSIM_ASSET_ROOT", raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for module in ("suite.install.worker", "suite.launch.containers"):
        monkeypatch.setattr(f"{module}.ROOT", tmp_path / "project")
    return tmp_path / "project"


@pytest.mark.usefixtures("project")
def test_assets_are_built_inside_once_and_belong_to_the_caller(engine: Engine, image: ImageFacts) -> None:
    messages: list[str] = []
    for _ in range(2):
        worker = provision_in_container(engine, image, assets="offline", on_message=messages.append)
    assert worker.python == Path("/opt/python")
    assert worker.pins_sha256 == "ab" * 32
    assert worker.asset_root is not None
    assert (worker.asset_root / "manifest.json").read_text() == '{"by": "0"}\n'  # not the image's own user
    assert worker.cache_dir.is_dir()
    assert len(messages) == 1


@pytest.mark.usefixtures("project")
def test_a_campaign_has_the_image_render_what_its_stack_needs_alone(
    engine: Engine, image: ImageFacts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "connect", lambda: engine)
    requests: list[Request] = []
    monkeypatch.setattr(build, "env_check_inside", lambda _engine, _image, request, **_: requests.append(request))
    options = options_with(matrix="smoke", launcher="container", image=image.image_id)
    asked = Asked(options=options, stack="kitless", device="cpu", say=print, out=Path("out"))
    registry.runtime_of(asked).check()
    assert requests == [Request(device="cpu", everything=False)]


def test_a_build_that_fails_says_why(engine: Engine, image: ImageFacts, project: Path) -> None:
    (project / "refuse").write_text("")
    with pytest.raises(WorkerEnvironmentError, match=r"exit code 3:\nno such wheel"):
        provision_in_container(engine, image, assets="offline", on_message=lambda _: None)


def test_an_image_of_somebody_else_is_refused(engine: Engine) -> None:
    foreign = engine.find_image(BUSYBOX)
    with pytest.raises(ContainerError, match="nox -s build"):
        provision_in_container(engine, foreign, assets="offline", on_message=lambda _: None)


# Rounds that take turns, each in a container of its own: their sockets are in folders that the containers mount


def test_rounds_in_containers_take_turns_and_a_fault_ends_its_own_case_only(
    engine: Engine, debian: str, environment: Environment, tmp_path: Path
) -> None:
    image = engine.find_image(debian)
    in_container = functools.partial(run, engine=engine, image=image, options=ContainerOptions(project_root=ROOT))
    host = TurningHost(faults={(CASES[1].case_id, 0): "killed"}, python=PYTHON_IN_DEBIAN, run=in_container)
    run_all(turning_campaign(host, environment), tmp_path)
    assert marked_processes(host.mark) == []
    stored = {record.case.case_id: record for record in records(tmp_path)}
    assert [stored[case.case_id].outcome for case in CASES] == ["completed", "crashed", "completed"]
    for record in stored.values():
        assert record.turns is not None
        assert sorted(record.turns.beside) == sorted(stored.keys() - {record.case.case_id})
        assert record.ranks[0].samples["turn"][-1] is not None
