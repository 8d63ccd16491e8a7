"""A real Docker engine for tests, from Debian's docker.io, started by hand: no systemd, no bridge, no firewall rules.

Its base images come from Debian's packages too, because no registry is within reach: busybox for what must be quick,
a Debian tree with a Python 3.12 in it for what must be real. tests/fake_nvidia stands for NVIDIA's container toolkit.
"""

import contextlib
import gc
import io
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import docker
import pytest

from suite.external.docker_engine import Engine
from suite.files.cache import cache_root
from tests.debian_packages import install_packages

BUSYBOX: Final = "localhost/labscale-test/busybox:latest"
DEBIAN: Final = "localhost/labscale-test/debian:latest"
PYTHON_IN_DEBIAN: Final = "/opt/python3.12/bin/python3.12"
FAKE_NVIDIA: Final = Path(__file__).parent / "fake_nvidia"
PROGRAMS: Final = {"dockerd": "docker.io", "mmdebstrap": "mmdebstrap", "busybox": "busybox-static"}
# The SDK does not close the connection of a streamed answer; the fixture `engine` has it collected in time.
FORGOTTEN_SOCKETS: Final = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <socket.socket:pytest.PytestUnraisableExceptionWarning"
)
START_PATIENCE_S: Final = 30.0
SUITE: Final = "bookworm"
# What the copied Python's extension modules are linked to.
PYTHON_LIBRARIES: Final = "libbz2-1.0,libffi8,liblzma5,libsqlite3-0,libssl3,libuuid1,zlib1g"
# The largest that Mesa needs, none of which is a part of graphics: a layer with Mesa is built in half the time.
MESA_LIBRARIES: Final = "libicu72,libllvm15,python3"


@dataclass(frozen=True, kw_only=True)
class RunningEngine:
    """An engine of this test session."""

    url: str
    engine: Engine
    client: docker.DockerClient  # for what only tests ask


@pytest.fixture(scope="session")
def running_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngine]:
    """Start an engine with a busybox image; skip where it cannot be started, and say why."""
    if os.geteuid() != 0:
        pytest.skip("needs root: dockerd mounts file systems")
    install(PROGRAMS)
    folder = tmp_path_factory.mktemp("dockerd")
    with _dockerd(folder) as url, contextlib.closing(docker.DockerClient(base_url=url, timeout=60)) as client:
        client.api.import_image_from_data(busybox_tar(), repository=BUSYBOX.partition(":")[0], tag="latest")
        yield RunningEngine(url=url, engine=Engine(client), client=client)


@pytest.fixture
def engine(running_engine: RunningEngine) -> Iterator[Engine]:
    """The engine for one test, at whose end no container may be left."""
    yield running_engine.engine
    left = running_engine.client.containers.list(all=True)
    names = [container.name for container in left]
    gc.collect()
    for container in left:
        container.remove(force=True)
    assert names == []


@pytest.fixture(scope="session")
def debian(running_engine: RunningEngine) -> str:
    """Name of a Debian image with a Python 3.12; its tree is kept in labscale's cache, for other checkouts too."""
    tree = cache_root() / f"container-base-of-the-tests-{SUITE}-{platform.python_version()}-2.tar"  # 2: of this code
    if not tree.exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        _make_debian(tree)
    running_engine.client.api.import_image_from_file(str(tree), repository=DEBIAN.partition(":")[0], tag="latest")
    return DEBIAN


def install(programs: Mapping[str, str]) -> None:
    """Install the Debian packages of programs that are missing; skip where that is not possible."""
    missing = [package for program, package in programs.items() if shutil.which(program, path=_path()) is None]
    if not missing:
        return
    said = install_packages(missing)
    if said is not None:
        pytest.skip(f"needs the packages {' '.join(missing)}: {said[-300:]}")


def _path() -> str:
    return f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"


@contextlib.contextmanager
def _dockerd(folder: Path) -> Iterator[str]:
    """Run dockerd in ``folder``, and leave neither the process nor a mount, even when the tests are killed.

    Its mounts are in a namespace of its own, which ends with its last process. A mount that stayed would make every
    later run of the tests fail, when pytest clears its old folders.
    """
    url = f"unix://{folder}/docker.sock"
    command = [
        "setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "slave", "dockerd", "--host", url,
        "--data-root", str(folder / "data"), "--exec-root", str(folder / "exec"),
        "--pidfile", str(folder / "pid"), "--storage-driver", "overlay2", "--bridge=none", "--iptables=false",
        "--ip6tables=false", "--ip-forward=false", "--ip-masq=false",
    ]  # fmt: skip
    log = folder / "dockerd.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env={**os.environ, "PATH": f"{FAKE_NVIDIA}:{_path()}"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C ends the tests first, and they need the engine for that
        )
    try:
        _await_socket(process, folder / "docker.sock", log)
        yield url
    finally:
        process.terminate()
        process.wait(60)
        shutil.rmtree(folder / "data")  # images of gigabytes, which pytest would keep for its last three sessions


def _await_socket(process: subprocess.Popen[bytes], socket: Path, log: Path) -> None:
    deadline_s = time.monotonic() + START_PATIENCE_S
    while not socket.exists():
        if process.poll() is not None:  # some containers and kernels do not allow it
            pytest.skip(f"dockerd does not run here: {log.read_text()[-500:]}")
        assert time.monotonic() < deadline_s, log.read_text()[-2000:]
        time.sleep(0.05)


def busybox_tar() -> bytes:
    """A root file system: one static program under many names."""
    busybox = shutil.which("busybox", path=_path())
    assert busybox
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, mode in (("bin", 0o755), ("etc", 0o755), ("usr/bin", 0o755), ("usr/lib", 0o755), ("tmp", 0o1777)):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, mode
            tar.addfile(folder)
        tar.add(busybox, "bin/busybox")
        for name in names:
            if name != "busybox":
                link = tarfile.TarInfo(f"bin/{name}")
                link.type, link.linkname = tarfile.SYMTYPE, "busybox"
                tar.addfile(link)
    return content.getvalue()


def _make_debian(tree: Path) -> None:
    """Make a Debian tree with a copy of this Python, which stands for the python3.12 of Ubuntu 24.04."""
    prefix = Path(sys.base_prefix)
    if prefix == Path("/usr"):
        pytest.skip("needs a Python 3.12 in a folder of its own (uv's or pyenv's), to copy it into an image")
    target = PYTHON_IN_DEBIAN.rpartition("/bin/")[0]
    left_out = ["test", "idlelib", "turtledemo", "ensurepip/__pycache__", "config-3.12*"]
    excludes = " ".join(f"--exclude='lib/python3.12/{name}'" for name in left_out)
    excludes += " --exclude='lib/*.a' --exclude='lib/python3.12/site-packages/*'"
    unpack = f'tar -C "$1{target}" --no-same-owner -xf -'
    copy = f'mkdir -p "$1{target}" && tar -C {prefix} {excludes} -cf - bin include lib | {unpack}'
    linker = f'echo {target}/lib > "$1/etc/ld.so.conf.d/python.conf" && chroot "$1" ldconfig'
    part = tree.with_suffix(".part")
    options = ['Acquire::Check-Valid-Until "false"', 'Acquire::Languages "none"']  # archives may be frozen copies
    command = [
        "mmdebstrap", "--mode=root", "--variant=apt", "--format=tar", "--quiet",
        f"--include={PYTHON_LIBRARIES},{MESA_LIBRARIES}",
        *(f"--aptopt={option}" for option in options),
        *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")),
        f"--customize-hook={copy}", f"--customize-hook={linker}", SUITE, str(part),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"mmdebstrap cannot make a base image here: {done.stderr.strip()[-300:]}")
    part.rename(tree)
