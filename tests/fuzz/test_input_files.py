"""Files that users write or carry over, and variables of their shells: each is taken or refused, with no traceback."""

import gc
import json
import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from packaging.requirements import Requirement

from suite.env_check.graphics import icd_manifests
from suite.env_check.graphics.icd_search import Candidate, search
from suite.env_check.host import assets, system
from suite.env_check.host.container import read_container
from suite.env_check.nodes.run import slurm_nodes
from suite.errors import BundleError
from suite.external.docker_engine import Engine
from suite.external.nvml.state import read_gpus
from suite.files.cache import cache_root
from suite.files.paths import ROOT
from suite.install import bundled_versions, install_bundle
from suite.install.bundle_contents import read_freeze, select
from suite.install.worker import locate_worker
from suite.launch.containers.run import requested_gpus
from suite.launch.images.table import IMAGES, host_files, plan_build
from suite.launch.manifests.image_digest import digest_of
from suite.matrix.cases import expand, on_nodes_of
from suite.matrix.catalog import CATALOG_PATH, Catalog, load_catalog
from suite.matrix.file import MATRICES_PATH, load_matrix
from suite.matrix.plan import plan
from suite.records.redaction import public
from tests.fuzz.strategies import changed_bytes, changed_json, changed_toml, taken_or_refused, texts

FREEZE: Final = (
    b"-e git+https://example.org/a@01#egg=a\nisaaclab @ file:///opt/b\ntorch==2.11.0+cu128\nlegacy===2004d\n"
)
BUNDLE: Final[dict[str, Any]] = {
    "format": 1, "suite_commit": "0123abc", "suite_dirty": False, "python": "3.12", "unpacked_bytes": 20480,
    "parts": [{"name": "part-000", "bytes": 3, "sha256": sha256(b"xyz").hexdigest()}],
    "distributions": [{"name": "numpy", "version": "2.5.5"}],
    "expected_on_target": [{"name": "torch", "specifier": ">=2", "assumed": False}],
    "versions": [{"digest": "0123abc", "packages": ["newton==1.6.0"]}],
}  # fmt: skip
DRIVER: Final = {"file_format_version": "1.0.1", "ICD": {"library_path": "libGLX.so.0", "api_version": "1.4.312"}}
MANIFEST: Final = {"format": 1, "files": {"ant.usd": {"sha256": sha256(b"ant").hexdigest(), "stand_in": None}}}
READERS: Final[dict[str, Callable[[], object]]] = {
    "CUDA_VISIBLE_DEVICES": lambda: (requested_gpus("cuda", os.environ), read_gpus()),
    "HOME": lambda: (locate_worker(project_root=ROOT, stack="kitless", worker_python=None), host_files(os.environ)),
    "LABSCALE_CACHE": lambda: public(f"{ROOT} and {cache_root()}"),
    "LABSCALE_IMAGE_DIGEST": lambda: digest_of(os.environ),
    "NVIDIA_VISIBLE_DEVICES": lambda: read_container(os.environ),
    "SLURM_JOB_NODELIST": lambda: slurm_nodes(os.environ),
    "VK_DRIVER_FILES": lambda: search("vulkan", Path("/"), os.environ),
    "XDG_DATA_DIRS": lambda: system.read(os.environ, cache_dir=cache_root()),
    "__EGL_VENDOR_LIBRARY_DIRS": lambda: search("egl", Path("/"), os.environ),
    bundled_versions.VARIABLE: lambda: bundled_versions.bundled_python(("newton==1.6.0",)),
}


def plan_all(matrix: str | Path, catalog: Catalog) -> None:
    cases = expand(on_nodes_of(load_matrix(matrix, catalog), 8), catalog, device="cuda", assets="offline")
    plan(
        cases, gpus_available=8, cpus_available=64, nnodes_available=2, device="cuda",
        available_stacks=("kitless", "ovphysx"), rounds=3, catalog=catalog,
    )  # fmt: skip


@given(st.data(), st.sampled_from(sorted(MATRICES_PATH.glob("*.toml"))))
def test_matrix(data: st.DataObject, source: Path) -> None:
    with taken_or_refused() as folder:
        (folder / "matrix.toml").write_bytes(data.draw(changed_toml(source.read_text(encoding="utf-8"))))
        plan_all(folder / "matrix.toml", load_catalog())


def read_images_of(table: Path) -> None:
    folder = table.parent / "copy"
    (folder / IMAGES.parent).mkdir(parents=True)
    for name in ("pins", "kitless.Dockerfile", "isaacsim.Dockerfile"):
        (folder / IMAGES.parent / name).symlink_to(ROOT / IMAGES.parent / name)
    table.rename(folder / IMAGES)
    plan_build("kitless", project_root=folder, version="1", git_commit=None, git_dirty=None, environ={})


FILES: Final[dict[str, tuple[st.SearchStrategy[bytes], Callable[[Path], object]]]] = {
    "catalog.toml": (
        changed_toml(CATALOG_PATH.read_text(encoding="utf-8")),
        lambda path: plan_all("smoke", load_catalog(path)),
    ),
    "images.toml": (changed_toml((ROOT / IMAGES).read_text(encoding="utf-8")), read_images_of),
    "freeze.txt": (
        changed_bytes(FREEZE),
        lambda path: select([Requirement("legacy<3"), Requirement("torch")], pool={}, target=read_freeze(path)),
    ),
    "icd.json": (
        changed_json(DRIVER),
        lambda path: icd_manifests._read_file("vulkan", Candidate(path=path, source="VK_DRIVER_FILES")),
    ),
    "manifest.json": (changed_json(MANIFEST), lambda path: assets.read(path.parent, is_own=True)),
}


@pytest.mark.parametrize("name", FILES)
@given(data=st.data())
def test_file(name: str, data: st.DataObject) -> None:
    content, read = FILES[name]
    with taken_or_refused() as folder:
        (folder / name).write_bytes(data.draw(content))
        read(folder / name)


@given(changed_json(BUNDLE), changed_bytes(b"xyz"))
@example(json.dumps(BUNDLE).encode(), b"xyz")
def test_bundle(index: bytes, part: bytes) -> None:
    with taken_or_refused() as folder:
        (folder / "bundle.json").write_bytes(index)
        (folder / "part-000").write_bytes(part)
        try:
            parts = install_bundle.find_parts(install_bundle.read_bundle([folder]), [folder])
            install_bundle.unpack(parts, folder / "into")
        except install_bundle.InstallError as error:  # the installer travels alone, so it has an error of its own
            raise BundleError from error


@given(st.sampled_from(sorted(READERS)), texts.filter(lambda text: "\0" not in text))
@example("CUDA_VISIBLE_DEVICES", "0,,1")
def test_variable(name: str, value: str) -> None:
    given = os.fsdecode(value.encode("utf-8", "surrogateescape"))
    with taken_or_refused(), mock.patch.dict(os.environ, {name: given}):
        READERS[name]()


@pytest.mark.parametrize(
    "engine", ["tcp://127.0.0.1:99999", "http://[::1", "unix://", "fd://", "tcp://127.0.0.1:1/\udcff"]
)
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_address_of_an_engine(engine: str) -> None:
    with taken_or_refused(), mock.patch.dict(os.environ, {"DOCKER_HOST": engine}):
        Engine.connect()
    gc.collect()  # the SDK forgets its sockets
