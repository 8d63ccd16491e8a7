"""Variables of the environment that labscale reads itself."""

import gc
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from unittest import mock

from suite.env_check.graphics.icd_search import search
from suite.env_check.host import system, worker
from suite.env_check.host.container import read_container
from suite.env_check.nodes import run as nodes
from suite.errors import ContainerError
from suite.external.docker_engine import Engine
from suite.external.nvml.state import read_gpus
from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.install import asset_root, bundled_versions
from suite.install.worker import locate_worker
from suite.launch.containers import run as container
from suite.launch.emulated.run import visible_gpus
from suite.launch.images import table as images
from suite.launch.manifests import image_digest
from suite.records.redaction import public
from tests.fuzz.mutations import any_number, any_text
from tests.fuzz.target import Target

VARIABLES: Final = (
    "HOME", "LABSCALE_CACHE", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_DATA_HOME", "XDG_DATA_DIRS",
    "XDG_RUNTIME_DIR", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "ISAACSIM_ASSET_ROOT", "SLURM_JOB_NODELIST",
    "SLURM_JOB_ID", "PYTHONPATH", "VK_DRIVER_FILES", "VK_ICD_FILENAMES", "VK_ADD_DRIVER_FILES",
    "VK_LOADER_DRIVERS_SELECT", "VK_LOADER_DRIVERS_DISABLE", "__EGL_VENDOR_LIBRARY_FILENAMES",
    "__EGL_VENDOR_LIBRARY_DIRS", "NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "DOCKER_HOST",
    "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH", "DOCKER_CONFIG", bundled_versions.VARIABLE, image_digest.DIGEST,
    *images.INDEX_SETTINGS, *images.PROXY_SETTINGS, *images.CERTIFICATE_SETTINGS,
)  # fmt: skip
ENGINES: Final = (  # that nobody answers at, without a question to the network
    "unix:///missing.sock", "tcp://127.0.0.1:1", "http://[::1", "ssh://127.0.0.1:1", "tcp://", "npipe://x", "fd://",
    "tcp://127.0.0.1:99999", "unix://", "://", "tcp://127.0.0.1:1/\udcff",
)  # fmt: skip
GPUS: Final = ("0", "1,0", "-1", "0,,1", "GPU-5a7f", "MIG-1", "4294967296", "all", " 1 , 2 ")


def read_variables(rng: random.Random, folder: Path) -> None:
    """Some variables with any values, the others as a login shell has them, and a user that the system may not know."""
    environ = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder)}
    for name in rng.sample(VARIABLES, rng.choice((1, 2, 4))):
        if name == "HOME" and rng.random() < 0.5:
            del environ["HOME"]
        else:
            environ[name] = _value(rng, name, folder)
    (folder / "variables.txt").write_text(repr(environ), encoding="utf-8")
    user = rng.choice((os.getuid(), 12345))
    with mock.patch.dict(os.environ, environ, clear=True), mock.patch.object(os, "getuid", return_value=user):
        _read(rng.choice(READERS))


def _value(rng: random.Random, name: str, folder: Path) -> str:
    """Return a value that the system can pass: no NUL, and no character that cannot come from bytes."""
    match name:
        case "DOCKER_HOST":
            text = rng.choice(ENGINES)
        case "CUDA_VISIBLE_DEVICES":
            text = rng.choice((*GPUS, any_text(rng)))
        case _:
            text = rng.choice(
                (any_text(rng), str(any_number(rng)), f"{folder}/{any_text(rng)}", f"{any_text(rng)}:/etc")
            )
    return text.replace("\0", "")


def _read(reader: Callable[[], object]) -> None:
    found = reader()
    if isinstance(found, Iterator):
        list(found)


def _assets() -> object:
    return asset_root.find_assets(
        "official", python=Path("python"), key="x", project_root=ROOT, on_message=lambda _: None
    )


def _engine() -> None:
    refused = None
    try:
        Engine.connect().close()
    except ContainerError as error:
        refused = str(error)
    gc.collect()  # the SDK forgets its sockets, of which Python would warn later
    if refused is not None:
        raise ContainerError(refused)


READERS: Final[tuple[Callable[[], object], ...]] = (
    lambda: public(f"{ROOT} and {cache_root()}"),
    lambda: locate_worker(project_root=ROOT, stack="kitless", worker_python=None),
    lambda: bundled_versions.bundled_python(("newton==1.6.0",)),
    _assets,
    lambda: image_digest.digest_of(os.environ),
    lambda: images.host_files(os.environ),
    lambda: container.requested_gpus("cuda", os.environ),
    lambda: visible_gpus(os.environ.get("CUDA_VISIBLE_DEVICES"), 8),
    read_gpus,
    lambda: nodes.slurm_nodes(os.environ),
    lambda: read_container(os.environ),
    lambda: system.read(os.environ, cache_dir=cache_root()),
    lambda: search("vulkan", Path("/"), os.environ),
    lambda: search("egl", Path("/"), os.environ),
    lambda: worker.site_folders(Path("/usr/bin/python3"), os.environ),
    _engine,
)
VARIABLE_TARGETS: Final[tuple[Target, ...]] = (Target(name="variables", attempt=read_variables),)
