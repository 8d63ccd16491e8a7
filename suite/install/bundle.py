"""Packs everything that a host without a network lacks, in parts that are small enough to carry.

A bundle is a folder with ``part-000`` …, ``bundle.json`` (its contents, and hashes of the parts) and ``install.py``.
The parts are one xz-compressed tar archive, split: ``site/`` (distributions of the worker and of the suite),
``versions/`` (other versions of some, see ``bundle_contents``), ``assets/`` and ``labscale/`` (the tracked files of
the checkout).
"""

import hashlib
import itertools
import json
import lzma
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import Distribution
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from suite.errors import BundleError
from suite.external.machine import CANNOT_SUBMIT
from suite.install import bundle_contents, pins
from suite.install.bundle_contents import Selection, Versions
from suite.install.pins import requirements_of
from suite.install.worker import Worker
from suite.install.worker_packages import digest_of
from suite.matrix.own_worker import PINS_OF
from suite.schema.record import Device, Stack

FORMAT: Final = 1
PART_SIZE_MIB: Final = 58
XZ_PRESET: Final = 2  # to a quarter of the size in a minute or two; 6 saves another tenth in five times the time
GROUPS: Final = ("suite", "report")  # of pyproject.toml: a host with a bundle builds reports and verifies too
INSTALLER: Final = Path(__file__).with_name("install_bundle.py")

Entry = tuple[str, Path]  # name in the archive, file


def make_bundle(
    *,
    project_root: Path,
    worker: Worker,
    out_dir: Path,
    part_size_mib: int = PART_SIZE_MIB,
    target: Mapping[str, str | None],
    stack: Stack,
    for_device: Device,
    versions: Mapping[Versions, Path],
    on_message: Callable[[str], None],
) -> None:
    """Write a bundle into ``out_dir``: the parts, ``bundle.json`` and ``install.py``.

    ``target``: the target's distributions (``bundle_contents.read_freeze``); those that fit are not packed.
    ``versions``: sets of other versions, and the Python that has each (``bundle_contents.install_sets``).
    Raises BundleError if something needed is missing here, or if ``out_dir`` cannot be written.
    """
    if worker.asset_root is None:
        raise AssertionError("offline assets have a root")
    own = bundle_contents.installed(worker.python)
    pool = bundle_contents.pooled(bundle_contents.installed(sys.path), own)
    selection = bundle_contents.select(_roots(project_root, stack, own), pool=pool, target=target)
    entries = _entries(selection, project_root=project_root, asset_root=worker.asset_root, for_device=for_device)
    others = (bundle_contents.entries(packages, python, for_device=for_device) for packages, python in versions.items())
    ordered = sorted(itertools.chain(entries, *others))
    unpacked_bytes = sum(path.stat().st_size for _, path in ordered)
    _clear(out_dir)
    is_dirty = bool(_git(project_root, "status", "--porcelain", "--untracked-files=no").strip())
    if is_dirty:
        on_message(CANNOT_SUBMIT)
    on_message(f"Packing {len(selection.bundled)} distributions, {unpacked_bytes / 1e6:.0f} MB, into {out_dir}")
    description = {
        "format": FORMAT,
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "suite_commit": _git(project_root, "rev-parse", "HEAD").strip(),
        "suite_dirty": is_dirty,
        "python": pins.PYTHON_VERSION,
        "stack": stack,
        "for_device": for_device,
        "asset_sha256": worker.asset_sha256,
        "unpacked_bytes": unpacked_bytes,
        "parts": _pack(ordered, out_dir=out_dir, part_bytes=part_size_mib * 2**20),
        "distributions": [{"name": item.name, "version": item.version} for item in selection.bundled],
        "expected_on_target": selection.expected,
        "left_out": dict(sorted(selection.left_out.items())),
        "versions": [{"digest": digest_of(packages), "packages": list(packages)} for packages in versions],
    }
    with _writing_to(out_dir):
        (out_dir / "install.py").write_text(INSTALLER.read_text())
        # Last: it marks a complete bundle.
        (out_dir / "bundle.json").write_text(json.dumps(description, indent=1) + "\n")


class PartWriter:
    """Splits what is written into files of at most ``part_bytes``, and hashes them."""

    def __init__(self, out_dir: Path, part_bytes: int) -> None:
        self.parts: list[dict[str, Any]] = []  # as bundle.json lists them
        self._out_dir = out_dir
        self._part_bytes = part_bytes
        self._buffer = bytearray()

    def write(self, data: bytes) -> int:
        self._buffer += data
        while len(self._buffer) >= self._part_bytes:
            self._write_part()
        return len(data)

    def finish(self) -> list[dict[str, Any]]:
        if self._buffer:
            self._write_part()
        return self.parts

    def _write_part(self) -> None:
        content = bytes(self._buffer[: self._part_bytes])
        del self._buffer[: self._part_bytes]
        name = f"part-{len(self.parts):03d}"
        with _writing_to(self._out_dir):
            (self._out_dir / name).write_bytes(content)
        self.parts.append({"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()})


def _pack(entries: Iterable[Entry], *, out_dir: Path, part_bytes: int) -> list[dict[str, Any]]:
    """Write the archive. Equal files give equal parts: names are sorted, times and owners left out."""
    writer: Any = PartWriter(out_dir, part_bytes)  # all that xz needs of a file
    with (
        lzma.open(writer, "wb", preset=XZ_PRESET) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, path in entries:
            info = tarfile.TarInfo(name)
            info.size = path.stat().st_size
            info.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            with path.open("rb") as content:
                tar.addfile(info, content)
    return list(writer.finish())


def _entries(selection: Selection, *, project_root: Path, asset_root: Path, for_device: Device) -> Iterator[Entry]:
    for name, path in bundle_contents.files(selection.bundled, for_device=for_device):
        yield f"site/{name}", path
    for path in asset_root.rglob("*"):
        if path.is_file():
            yield f"assets/{path.relative_to(asset_root).as_posix()}", path
    for name in _git(project_root, "ls-files", "-z").split("\0"):
        if name and (project_root / name).is_file():  # a tracked file may be missing in the working tree
            yield f"labscale/{name}", project_root / name


def _roots(project_root: Path, stack: Stack, worker: Mapping[str, Distribution]) -> list[Requirement]:
    """Return the requirements of worker, suite and reports, and packaging, by which the installer checks versions.

    Of RL libraries with a worker of their own, those that this worker can run are needed too.
    """
    if stack == "isaacsim":
        raise BundleError("Isaac Sim cannot be bundled; copy an image of it. Bundles exist for kitless and ovphysx.")
    groups = tomllib.loads((project_root / "pyproject.toml").read_text())["dependency-groups"]
    own = [text for name in GROUPS for text in groups[name] if isinstance(text, str)]  # else it includes a group
    try:
        roots = [Requirement("packaging"), *map(Requirement, own)]
        for source in ("worker",) if stack == "kitless" else ("worker", stack):
            roots += requirements_of(project_root / pins.PINS_DIR / f"{source}.in")
        for source in sorted(set(PINS_OF.values())):
            asked = requirements_of(project_root / pins.PINS_DIR / f"{source}.in")
            here = [(need, worker.get(canonicalize_name(need.name))) for need in asked]
            if all(there and need.specifier.contains(there.version) for need, there in here):
                roots += asked
    except InvalidRequirement as error:
        raise BundleError(f"A requirement in {pins.PINS_DIR} or pyproject.toml cannot be read: {error}") from error
    return roots


def _git(project_root: Path, *arguments: str) -> str:
    command = ["git", "-C", str(project_root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise BundleError(f"A bundle is made from a git checkout with a commit; git says: {done.stderr.strip()}")
    return done.stdout


def _clear(out_dir: Path) -> None:
    """Remove an older bundle; refuse a folder with other files."""
    with _writing_to(out_dir):
        out_dir.mkdir(parents=True, exist_ok=True)
        old = sorted(out_dir.iterdir())  # bundle.json before the parts
        for path in old:
            if not (path.match("part-[0-9]*") or path.name in {"bundle.json", "install.py"}):
                raise BundleError(
                    f"{out_dir} contains {path.name!r}, which is not part of a bundle. Choose an empty folder."
                )
        for path in old:
            path.unlink()


@contextmanager
def _writing_to(out_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BundleError(
            f"The bundle cannot be written to {out_dir}: {error.strerror}. Check space and permissions, or choose"
            " another folder with --out."
        ) from error
