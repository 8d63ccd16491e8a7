"""The container launcher against a real engine; shell scripts in a busybox image stand in for torchrun."""

import multiprocessing
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import docker
import psutil
import pytest

from suite.errors import ContainerError
from suite.external.container_spec import OWNER_LABEL, ContainerSpec
from suite.external.docker_engine import Engine, is_gone, owner_label, remove_abandoned
from suite.launch.containers.run import ContainerOptions, run
from suite.schema.record import Case, Launch
from tests.fixtures.machines.container_engine import BUSYBOX, FORGOTTEN_SOCKETS, RunningEngine
from tests.fixtures.machines.container_runs import STUBBORN, MakeScript, RunBusybox, log_of

pytestmark = FORGOTTEN_SOCKETS


def test_run_reports_progress_keeps_the_log_and_names_the_image(
    engine: Engine, run_busybox: RunBusybox, make_script: MakeScript
) -> None:
    launch = make_script("""
grep -q '"iterations": 3' configuration.json || exit 9
for iteration in 1 2 3; do emit 0 iteration; emit 1 iteration; sleep 0.3; done
echo to stdout; echo to stderr >&2
""")
    seen: list[int] = []
    result = run_busybox(launch, on_progress=seen.append)
    assert (result.exit_code, result.ended_by, result.out_of_memory) == (0, None, False)
    assert result.image_digest == engine.find_image(BUSYBOX).digest  # of a registry once a test has pushed it there
    assert result.wall_time_s > 0.8
    assert seen == sorted(set(seen))
    assert seen[-1] == 3
    assert log_of(launch) == "to stdout\nto stderr\n"


def test_exit_code_and_signal_are_passed_on(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    assert run_busybox(make_script("exit 3")).exit_code == 3
    assert run_busybox(make_script("kill -9 $$")).exit_code == -signal.SIGKILL


def test_project_is_read_only(run_busybox: RunBusybox, make_script: MakeScript, mounted_project: Path) -> None:
    launch = make_script(f"cd {mounted_project}; ls; touch new; true")
    assert run_busybox(launch).exit_code == 0
    assert "source.py\n" in log_of(launch)
    assert "Read-only file system" in log_of(launch)


def test_timeout_ends_what_ignores_sigterm(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    result = run_busybox(make_script(STUBBORN, timeout_s=1.0, hang_timeout_s=9.0))
    assert (result.ended_by, result.exit_code) == ("timeout", -signal.SIGKILL)


def test_hang_is_seen_and_stacks_are_dumped_by_those_who_handle_the_signal(
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


def test_stop_event_interrupts(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    stop = threading.Event()
    assert run_busybox(make_script(STUBBORN), on_progress=lambda _: stop.set(), stop=stop).ended_by == "interrupted"


def test_ctrl_c_removes_the_container(engine: Engine, run_busybox: RunBusybox, make_script: MakeScript) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_busybox(make_script(STUBBORN), on_progress=interrupt)
    assert engine.owners() == {}


def test_memory_limit_is_told(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    result = run_busybox(make_script("tail /dev/zero"), memory_gb=0.05)
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
    with closing(docker.DockerClient(base_url=url)) as client:
        engine = Engine(client)
        run(launch, engine=engine, image=engine.find_image(BUSYBOX), options=ContainerOptions(project_root=folder))


def test_a_container_that_does_not_end_is_reported(engine: Engine) -> None:
    spec = ContainerSpec(name="labscale-slow", image=BUSYBOX, argv=("sh", "-c", "echo so far; sleep 3600"))
    with pytest.raises(ContainerError, match=r"0\.5 s .*\nso far"):
        engine.run_to_end(spec, timeout_s=0.5)


def test_a_program_for_a_container_that_has_ended_is_not_run(engine: Engine) -> None:
    with engine.container(ContainerSpec(name="labscale-ended", image=BUSYBOX, argv=("true",))) as container:
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
    with subprocess.Popen(["sleep", "60"]) as owner:
        dead = owner_label()[OWNER_LABEL].split(" ")
        dead[1:] = [str(owner.pid), f"{psutil.Process(owner.pid).create_time():.2f}"]
        alive_value = " ".join(dead)
        owner.kill()
    assert is_gone(alive_value)
    assert not is_gone(owner_label()[OWNER_LABEL])
    assert not is_gone("another-host 1 2.00")
    create = running_engine.client.containers.create
    create(BUSYBOX, ["true"], name="of-the-dead", labels={OWNER_LABEL: alive_value})
    mine = create(BUSYBOX, ["true"], name="mine", labels=owner_label())
    foreign = create(BUSYBOX, ["true"], name="foreign")
    assert remove_abandoned(engine) == ["of-the-dead"]
    assert {each.name for each in running_engine.client.containers.list(all=True)} == {"mine", "foreign"}
    mine.remove()
    foreign.remove()


# GPUs, by the stand-in for NVIDIA's toolkit

LOOK = "cat /etc/vulkan/icd.d/nvidia_icd.json /usr/share/glvnd/egl_vendor.d/10_nvidia.json; nvidia-smi; true"


def test_the_launcher_asks_for_graphics_too(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    launch = make_script(LOOK)
    run_busybox(launch, gpus="all")
    assert "libGLX_nvidia.so.0" in log_of(launch)
    assert "libEGL_nvidia.so.0" in log_of(launch)
    assert "GPU 0: stand-in\nGPU 1: stand-in\n" in log_of(launch)
    run_busybox(launch, gpus=("1",))
    assert "GPU 1: stand-in\n" in log_of(launch)
    assert "GPU 0" not in log_of(launch)


def test_a_run_without_gpus_hides_them(run_busybox: RunBusybox, make_script: MakeScript) -> None:
    launch = make_script("echo $NVIDIA_VISIBLE_DEVICES; nvidia-smi; true")
    run_busybox(launch)
    assert log_of(launch).startswith("void\n")
    assert "GPU" not in log_of(launch)
