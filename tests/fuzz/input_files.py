"""Files that users write or carry over, and those that say what labscale installs and builds."""

import hashlib
import io
import json
import lzma
import random
import tarfile
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement

from suite.env_check.graphics import icd_manifests as manifests
from suite.env_check.graphics.icd_search import Candidate
from suite.env_check.host import assets
from suite.errors import BundleError
from suite.external.machine import git_state
from suite.files.paths import ROOT
from suite.install import install_bundle
from suite.install.bundle_contents import read_freeze, select
from suite.install.install_bundle import InstallError
from suite.launch.images.table import IMAGES, plan_build, read_images
from suite.matrix.cases import expand, on_nodes_of
from suite.matrix.catalog import CATALOG_PATH, Catalog, load_catalog
from suite.matrix.file import MATRICES_PATH, load_matrix
from suite.matrix.plan import plan
from tests.fuzz.mutations import json_bytes, mutate_bytes, mutate_text, mutate_toml
from tests.fuzz.target import Target

FREEZE: Final = """# installed by hand
-e git+https://example.org/robots@0123abc#egg=robots
isaaclab @ file:///opt/isaaclab
numpy==2.5.5
torch==2.11.0+cu128
legacy===2004d
packaging
"""
PART: Final = "part-000"


def read_matrix(rng: random.Random, folder: Path) -> None:
    source = rng.choice(sorted(MATRICES_PATH.glob("*.toml")))
    path = folder / "matrix.toml"
    path.write_bytes(mutate_toml(rng, source.read_text(encoding="utf-8")))
    plan_all(path, load_catalog())


def plan_all(matrix: str | Path, catalog: Catalog) -> None:
    cases = expand(on_nodes_of(load_matrix(matrix, catalog), 8), catalog, device="cuda", assets="offline")
    plan(
        cases,
        gpus_available=8,
        cpus_available=64,
        nnodes_available=2,
        device="cuda",
        available_stacks=("kitless", "ovphysx"),
        rounds=3,
        catalog=catalog,
    )


def read_catalog(rng: random.Random, folder: Path) -> None:
    path = folder / "catalog.toml"
    path.write_bytes(mutate_toml(rng, CATALOG_PATH.read_text(encoding="utf-8")))
    plan_all(rng.choice(("smoke", "physx", "open")), load_catalog(path))


def read_table_of_images(rng: random.Random, folder: Path) -> None:
    containers = folder / IMAGES.parent
    containers.mkdir()
    for name in ("pins", "kitless.Dockerfile", "isaacsim.Dockerfile"):
        (containers / name).symlink_to(ROOT / IMAGES.parent / name)
    (folder / IMAGES).write_bytes(mutate_toml(rng, (ROOT / IMAGES).read_text(encoding="utf-8")))
    name = rng.choice(list(read_images(folder)) or ["kitless"])
    plan_build(name, project_root=folder, version="1", git_commit=None, git_dirty=None, environ={})


def read_list_of_the_target(rng: random.Random, folder: Path) -> None:
    path = folder / "freeze.txt"
    path.write_bytes(mutate_text(rng, FREEZE).encode("utf-8", "surrogatepass"))
    wanted = [Requirement(text) for text in ("numpy>=2", "legacy<3", "torch==2.11.0", "packaging")]
    select(wanted, pool={}, target=read_freeze(path))


def unpack_a_carried_bundle(rng: random.Random, folder: Path) -> None:
    """``bundle.json``, its parts, or the archive that they make up."""
    archive = _archive()
    damaged = rng.choice(("index", "part", "archive"))
    content = lzma.compress(mutate_bytes(rng, archive) if damaged == "archive" else archive, preset=0)
    content = mutate_bytes(rng, content) if damaged == "part" else content
    (folder / PART).write_bytes(content)
    index = {
        "format": 1, "suite_commit": "0123abc", "suite_dirty": False, "python": "3.12", "unpacked_bytes": 20480,
        "parts": [{"name": PART, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}],
        "distributions": [{"name": "numpy", "version": "2.5.5"}],
        "expected_on_target": [{"name": "torch", "specifier": ">=2", "assumed": False}],
        "versions": [{"digest": "0123abc", "packages": ["newton==1.6.0"]}],
    }  # fmt: skip
    (folder / "bundle.json").write_bytes(json_bytes(rng, index) if damaged == "index" else json.dumps(index).encode())
    git_state(folder / "labscale")
    try:
        bundle = install_bundle.read_bundle([folder])
        parts = install_bundle.find_parts(bundle, [folder])
        with install_bundle._writing_to(folder):
            install_bundle.unpack(parts, folder / "into")
    except InstallError as error:  # the installer travels alone, so it has an error of its own
        raise BundleError(str(error)) from error


def _archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in ("site/numpy/core.py", "site/numpy/é" + "n" * 150, "labscale/suite/__init__.py"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            tar.addfile(member, io.BytesIO(name.encode()[: len(name)]))
    return stream.getvalue()


def read_driver_manifest(rng: random.Random, folder: Path) -> None:
    document = {"file_format_version": "1.0.1", "ICD": {"library_path": "libGLX_nvidia.so.0", "api_version": "1.4.312"}}
    path = folder / "nvidia_icd.json"
    path.write_bytes(json_bytes(rng, document))
    manifests._read_file(rng.choice(("vulkan", "egl")), Candidate(path=path, source="VK_DRIVER_FILES"))


def read_asset_manifest(rng: random.Random, folder: Path) -> None:
    (folder / "ant.usd").write_bytes(b"ant")
    file = {"sha256": hashlib.sha256(b"ant").hexdigest(), "stand_in": None}
    (folder / "manifest.json").write_bytes(json_bytes(rng, {"format": 1, "files": {"ant.usd": file}}))
    assets.read(folder, is_own=True)


INPUT_FILES: Final[tuple[Target, ...]] = (
    Target(name="matrix", attempt=read_matrix),
    Target(name="catalog", attempt=read_catalog),
    Target(name="images", attempt=read_table_of_images),
    Target(name="freeze", attempt=read_list_of_the_target),
    Target(name="bundle", attempt=unpack_a_carried_bundle),
    Target(name="driver-manifest", attempt=read_driver_manifest),
    Target(name="asset-manifest", attempt=read_asset_manifest),
)
