"""The container launcher against a real engine; shell scripts in a busybox image stand in for torchrun."""

import io
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import docker
import psutil
import pytest
from docker.types import DeviceRequest

from suite.container_owner import is_gone, label, remove_abandoned
from suite.container_spec import OWNER_LABEL, ContainerSpec, Gpus, ImageFacts, Limit
from suite.docker_engine import Engine
from suite.errors import ContainerError
from suite.launch.apptainer import ApptainerOptions
from suite.launch.apptainer import render as render_apptainer
from suite.launch.container import ContainerOptions, check_options, render, requested_gpus, run
from suite.launch.native import run as run_native
from suite.launch.result import LaunchResult
from suite.schema import Case, Device, Launch
from tests.container_engine import BUSYBOX, FORGOTTEN_SOCKETS, RunningEngine, busybox_tar

pytestmark = FORGOTTEN_SOCKETS

GOLDEN = Path(__file__).parent / "golden"
MakeLaunch = Callable[..., Launch]
Run = Callable[..., LaunchResult]

# What the scripts start with; `emit 0 iteration` is what a rank writes.
PREAMBLE = """
cd "$RUN_DIR"
emit() { printf '{"event": "%s"}\\n' "$2" >> "rank-$1.jsonl"; }
"""
STUBBORN = "trap '' TERM; while true; do emit 0 iteration; sleep 0.2; done"


@pytest.fixture
def make_launch(tmp_path: Path, make_case: Callable[..., Case]) -> MakeLaunch:
    def make(script: str, *, grace_s: float = 1.0, **case_changes: float) -> Launch:
        run_dir = tmp_path / "r0"
        return Launch(
            case=make_case(**case_changes),
            round=0,
            argv=("/bin/sh", "-c", PREAMBLE + script),
            env={"RUN_DIR": str(run_dir)},
            run_dir=str(run_dir),
            grace_s=grace_s,
        )

    return make


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "source.py").write_text("")
    return folder


@pytest.fixture
def run_busybox(engine: Engine, project: Path) -> Run:
    """Run a launch in the busybox image; the engine fixture asserts that no container is left."""

    def run_it(launch: Launch, **arguments: object) -> LaunchResult:
        options = {key: arguments.pop(key) for key in list(arguments) if key not in ("on_progress", "stop")}
        return run(
            launch,
            engine=engine,
            image=engine.find_image(BUSYBOX),
            options=ContainerOptions(project_root=project, **options),  # type: ignore[arg-type]
            **arguments,  # type: ignore[arg-type]
        )

    return run_it


def log_of(launch: Launch) -> str:
    return (Path(launch.run_dir) / "logs" / "torchrun.log").read_text()


# What is asked of the engine


def cuda_launch(make_case: Callable[..., Case]) -> Launch:
    return Launch(
        case=make_case(case_id="ant-weak/rsl_rl-kitless-n4096-1x4", device="cuda", nproc_per_node=4),
        round=2,
        argv=("/opt/labscale/worker/bin/python", "-m", "torch.distributed.run", "-m", "tasks.worker", "/data/runs/r2"),
        env={"PYTHONPATH": "/data/labscale", "OMP_NUM_THREADS": "8", "ISAACSIM_ASSET_ROOT": "/data/cache/assets"},
        run_dir="/data/runs/r2",
    )


def check_golden(name: str, value: object) -> None:
    """Compare with a file of tests/golden, or write it when UPDATE_GOLDEN is set."""
    text = json.dumps(value, indent=1) + "\n"
    if os.environ.get("UPDATE_GOLDEN"):
        (GOLDEN / name).write_text(text)
    assert text == (GOLDEN / name).read_text()


def test_rendered_container(make_case: Callable[..., Case]) -> None:
    options = ContainerOptions(
        project_root=Path("/data/labscale"),
        asset_root=Path("/data/cache/assets"),
        cache_dir=Path("/data/cache/kernels"),
        gpus=("0", "1", "2", "3"),
        shm_gb=16,
        memory_gb=64,
        limits=(Limit(name="memlock", value=-1),),
        accept_eula=True,
    )
    spec = render(
        cuda_launch(make_case),
        "sha256:1",
        options,
        name="labscale-1",
        user="1000:1000",
        owner={OWNER_LABEL: "host 1 2"},
    )
    check_golden("container_spec.json", asdict(spec))


def test_rendered_apptainer_command(make_case: Callable[..., Case]) -> None:
    options = ApptainerOptions(
        image=Path("/images/kitless.sif"),
        project_root=Path("/data/labscale"),
        asset_root=Path("/data/cache/assets"),
        cache_dir=Path("/data/cache/kernels"),
    )
    launch = cuda_launch(make_case)
    rendered = render_apptainer(launch, options)
    check_golden("apptainer_launch.json", {"argv": rendered.argv, "env": rendered.env})
    assert (rendered.case, rendered.run_dir, rendered.grace_s) == (launch.case, launch.run_dir, launch.grace_s)
    on_cpu = render_apptainer(replace(launch, case=make_case(device="cpu")), replace(options, accept_eula=True))
    assert "--nv" not in on_cpu.argv
    assert on_cpu.env["APPTAINERENV_ACCEPT_EULA"] == "Y"


@pytest.mark.skipif(shutil.which("apptainer") is None, reason="apptainer is not installed")
def test_apptainer_runs_the_rendered_command(make_launch: MakeLaunch, tmp_path: Path, project: Path) -> None:
    sandbox = tmp_path / "sandbox"
    with tarfile.open(fileobj=io.BytesIO(busybox_tar())) as tar:
        tar.extractall(sandbox, filter="tar")
    for name in ("dev", "proc", "sys"):
        (sandbox / name).mkdir()
    launch = make_launch(f'emit 0 iteration; echo "$COMMAS"; touch {project}/new; exit 3')
    launch = replace(launch, env={**launch.env, "COMMAS": "a,b"})
    seen: list[int] = []
    rendered = render_apptainer(launch, ApptainerOptions(image=sandbox, project_root=project))
    assert run_native(rendered, on_progress=seen.append).exit_code == 3
    assert seen == [1]
    assert "a,b\n" in log_of(launch)
    assert "Read-only file system" in log_of(launch)


@pytest.mark.parametrize(
    ("device", "environ", "gpus"),
    [
        ("cuda", {}, "all"),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "2, GPU-a"}, ("2", "GPU-a")),
        ("cuda", {"CUDA_VISIBLE_DEVICES": ""}, None),
        ("cuda", {"CUDA_VISIBLE_DEVICES": "1,-1,2"}, ("1",)),
        ("cpu", {"CUDA_VISIBLE_DEVICES": "0"}, None),
    ],
)
def test_visible_gpus_are_asked_for(device: Device, environ: Mapping[str, str], gpus: Gpus) -> None:
    assert requested_gpus(device, environ) == gpus


# A run


def test_run_reports_progress_keeps_the_log_and_names_the_image(
    engine: Engine, run_busybox: Run, make_launch: MakeLaunch
) -> None:
    launch = make_launch("""
grep -q '"iterations": 3' case.json || exit 9
for iteration in 1 2 3; do emit 0 iteration; emit 1 iteration; sleep 0.3; done
echo to stdout; echo to stderr >&2
""")
    seen: list[int] = []
    result = run_busybox(launch, on_progress=seen.append)
    assert (result.exit_code, result.ended_by, result.out_of_memory) == (0, None, False)
    assert result.image_digest == engine.find_image(BUSYBOX).image_id
    assert 0.8 < result.wall_time_s < 10
    assert seen == sorted(set(seen))
    assert seen[-1] == 3
    assert log_of(launch) == "to stdout\nto stderr\n"


def test_exit_code_and_signal_are_passed_on(run_busybox: Run, make_launch: MakeLaunch) -> None:
    assert run_busybox(make_launch("exit 3")).exit_code == 3
    assert run_busybox(make_launch("kill -9 $$")).exit_code == -signal.SIGKILL


def test_project_is_read_only(run_busybox: Run, make_launch: MakeLaunch, project: Path) -> None:
    launch = make_launch(f"cd {project}; ls; touch new; true")
    assert run_busybox(launch).exit_code == 0
    assert "source.py\n" in log_of(launch)
    assert "Read-only file system" in log_of(launch)


def test_timeout_ends_what_ignores_sigterm(run_busybox: Run, make_launch: MakeLaunch) -> None:
    result = run_busybox(make_launch(STUBBORN, timeout_s=1.0, hang_timeout_s=9.0))
    assert (result.ended_by, result.exit_code) == ("timeout", -signal.SIGKILL)


def test_hang_is_seen_and_stacks_are_dumped_by_those_who_handle_the_signal(
    run_busybox: Run, make_launch: MakeLaunch
) -> None:
    launch = make_launch(
        """
(trap 'echo my stack' USR1; while true; do sleep 0.1; done) &
trap 'echo goodbye; exit 5' TERM
while true; do sleep 0.1; done
""",
        hang_timeout_s=1.0,
    )
    result = run_busybox(launch)
    assert (result.ended_by, result.exit_code) == ("hung", 5)
    assert log_of(launch) == "my stack\ngoodbye\n"  # without a handler SIGUSR1 would have ended it


def test_stop_event_interrupts(run_busybox: Run, make_launch: MakeLaunch) -> None:
    stop = threading.Event()
    assert run_busybox(make_launch(STUBBORN), on_progress=lambda _: stop.set(), stop=stop).ended_by == "interrupted"


def test_ctrl_c_removes_the_container(engine: Engine, run_busybox: Run, make_launch: MakeLaunch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_busybox(make_launch(STUBBORN), on_progress=interrupt)
    assert engine.owners() == {}


def test_memory_limit_is_told(run_busybox: Run, make_launch: MakeLaunch) -> None:
    result = run_busybox(make_launch("tail /dev/zero"), memory_gb=0.05)
    assert result.out_of_memory
    assert result.exit_code != 0


def test_shared_memory_is_the_hosts_or_of_the_size_asked_for(run_busybox: Run, make_launch: MakeLaunch) -> None:
    launch = make_launch("df -k /dev/shm | tail -1 | awk '{print $2}'")
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
    with closing(docker.DockerClient(base_url=url)) as client:
        engine = Engine(client)
        run(launch, engine=engine, image=engine.find_image(BUSYBOX), options=ContainerOptions(project_root=folder))


# Refusals, none of which leaves a container


def test_program_that_the_image_does_not_have(run_busybox: Run, make_launch: MakeLaunch) -> None:
    launch = replace(make_launch(""), argv=("/opt/nothing/python", "-m", "torch.distributed.run"))
    with pytest.raises(ContainerError, match=r"cannot start /opt/nothing/python: .*not found"):
        run_busybox(launch)


def test_start_that_fails_leaves_no_container(engine: Engine, run_busybox: Run, make_launch: MakeLaunch) -> None:
    with pytest.raises(ContainerError, match=r"unknown device\n?(.|\n)*No such GPU: `nvidia-smi -L`"):
        run_busybox(make_launch(""), gpus=("7",))
    assert engine.owners() == {}


def test_limit_that_the_engine_may_not_raise(run_busybox: Run, make_launch: MakeLaunch) -> None:
    if os.environ.get("CI") is None and can_raise_limits():
        pytest.skip("this machine may raise every limit")
    with pytest.raises(ContainerError, match="Leave the ulimit option out"):
        run_busybox(make_launch(""), limits=(Limit(name="memlock", value=-1),))


def can_raise_limits() -> bool:
    status = Path("/proc/self/status").read_text()
    effective = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff")), 16)
    return bool(effective >> 24 & 1)  # CAP_SYS_RESOURCE


def test_image_that_is_not_there(engine: Engine) -> None:
    with pytest.raises(
        ContainerError, match=r"labscale/none:1: the engine does not have it. Build it with `nox -s build`"
    ):
        engine.find_image("labscale/none:1")


@pytest.mark.usefixtures("engine")
def test_engine_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    with pytest.raises(ContainerError, match="Start the engine, or set DOCKER_HOST"):
        Engine.connect()


def test_podman_is_not_trusted_with_gpus(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "is_podman", True)
    image = engine.find_image(BUSYBOX)
    with pytest.raises(ContainerError, match="ignores requests for GPUs"):
        check_options(engine, image, ContainerOptions(project_root=tmp_path, gpus="all"))
    check_options(engine, image, ContainerOptions(project_root=tmp_path))


def test_licence_is_accepted_by_the_user_alone(engine: Engine, tmp_path: Path) -> None:
    image = ImageFacts(image_id="sha256:1", tags=(), repo_digests=(), labels={"labscale.stack": "isaacsim"})
    with pytest.raises(ContainerError, match="--accept-eula"):
        check_options(engine, image, ContainerOptions(project_root=tmp_path))
    check_options(engine, image, ContainerOptions(project_root=tmp_path, accept_eula=True))


# Containers of a labscale that was killed


def test_container_of_a_dead_owner_is_removed_and_others_are_left(
    engine: Engine, running_engine: RunningEngine
) -> None:
    with subprocess.Popen(["sleep", "60"]) as owner:
        dead = label()[OWNER_LABEL].split(" ")
        dead[1:] = [str(owner.pid), f"{psutil.Process(owner.pid).create_time():.2f}"]
        alive_value = " ".join(dead)
        owner.kill()
    assert is_gone(alive_value)
    assert not is_gone(label()[OWNER_LABEL])
    assert not is_gone("another-host 1 2.00")
    create = running_engine.client.containers.create
    create(BUSYBOX, ["true"], name="of-the-dead", labels={OWNER_LABEL: alive_value})
    mine = create(BUSYBOX, ["true"], name="mine", labels=label())
    foreign = create(BUSYBOX, ["true"], name="foreign")
    assert remove_abandoned(engine) == ["of-the-dead"]
    assert {each.name for each in running_engine.client.containers.list(all=True)} == {"mine", "foreign"}
    mine.remove()
    foreign.remove()


# GPUs, by the stand-in for NVIDIA's toolkit

LOOK = "cat /etc/vulkan/icd.d/nvidia_icd.json /usr/share/glvnd/egl_vendor.d/10_nvidia.json; nvidia-smi; true"


def test_without_the_graphics_capability_there_is_no_driver_manifest(running_engine: RunningEngine) -> None:
    """The classic failure, which `docker run --gpus all` walks into."""
    said = running_engine.client.containers.run(
        BUSYBOX,
        ["sh", "-c", LOOK],
        device_requests=[DeviceRequest(count=-1, capabilities=[["gpu"]])],
        network_mode="none",
        stderr=True,
        remove=True,
    ).decode()
    assert "can't open '/etc/vulkan/icd.d/nvidia_icd.json'" in said
    assert "GPU 0" in said


def test_the_launcher_asks_for_graphics_too(run_busybox: Run, make_launch: MakeLaunch) -> None:
    launch = make_launch(LOOK)
    run_busybox(launch, gpus="all")
    assert "libGLX_nvidia.so.0" in log_of(launch)
    assert "libEGL_nvidia.so.0" in log_of(launch)
    assert "GPU 0: stand-in\nGPU 1: stand-in\n" in log_of(launch)
    run_busybox(launch, gpus=("1",))
    assert "GPU 1: stand-in\n" in log_of(launch)
    assert "GPU 0" not in log_of(launch)


def test_a_run_without_gpus_hides_them(run_busybox: Run, make_launch: MakeLaunch) -> None:
    launch = make_launch("echo $NVIDIA_VISIBLE_DEVICES; nvidia-smi; true")
    run_busybox(launch)
    assert log_of(launch).startswith("void\n")
    assert "GPU" not in log_of(launch)


def test_a_container_that_does_not_end_is_reported(engine: Engine) -> None:
    spec = ContainerSpec(name="labscale-slow", image=BUSYBOX, argv=("sh", "-c", "echo so far; sleep 60"))
    started_s = time.monotonic()
    with pytest.raises(ContainerError, match=r"did not end within 0.5 s .*\nso far"):
        engine.run_to_end(spec, timeout_s=0.5)
    assert time.monotonic() - started_s < 10


def test_a_program_for_a_container_that_has_ended_is_not_run(engine: Engine) -> None:
    with engine.container(ContainerSpec(name="labscale-ended", image=BUSYBOX, argv=("true",))) as container:
        container.start()
        while container.exit_code(wait_s=0.05) is None:
            pass
        container.execute(("true",))
        container.stop(1.0)
        assert container.exit_code(wait_s=0) == 0
