"""Other versions of packages in a bundle, for cases with ``with_packages`` on a host without a network.

A set of versions is a folder with exactly the named distributions, which comes before the worker's packages::

    versions/<digest>/complete.json    names the versions (other_versions)
    versions/<digest>/newton/ …        files of the distributions
    versions/<digest>/bin/python       written by install.py: the host's Python, which finds this folder first
"""

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from suite.errors import BundleError, WorkerEnvironmentError
from suite.files.cache import path_in
from suite.files.json_file import read_json_or_none
from suite.install import bundle_contents
from suite.install.other_versions import digest_of, install_versions
from suite.install.worker_environment import COMPLETE
from suite.matrix.own_worker import name_of, own_worker_of
from suite.schema.record import Case, Device

FOLDER: Final = "versions"
VARIABLE: Final = "LABSCALE_VERSIONS"  # where that folder is on the host; labscale.sh sets it

type Versions = tuple[str, ...]  # ``name==version``, sorted


def asked_by(cases: Iterable[Case]) -> list[Versions]:
    """Return the distinct sets of versions of cases that run with the packed worker, not with pins of their own."""
    own_workers = (own_worker_of(case) for case in cases)
    return list(dict.fromkeys(own.packages for own in own_workers if own and own.packages and own.pins is None))


def install_sets(
    worker_python: Path, sets: Sequence[Versions], *, on_message: Callable[[str], None]
) -> dict[Versions, Path]:
    """Install each set over a copy of the worker here, and return the Python of each copy.

    Raises:
        BundleError: the worker is no virtual environment, so that it cannot be copied.
        WorkerEnvironmentError: a set cannot be installed, or Isaac Lab does not import with it.
    """
    worker = worker_python.parent.parent
    if sets and not (worker / "pyvenv.cfg").is_file():
        raise BundleError(
            f"The matrix asks for {', '.join(sets[0])}, which is installed over a copy of the worker, and {worker} is "
            "no virtual environment. Name the Python of one with --worker-python, or leave the option out."
        )
    return {packages: install_versions(worker, packages, on_message=on_message) for packages in sets}


def entries(packages: Versions, python: Path, *, for_device: Device) -> Iterator[tuple[str, Path]]:
    """Yield (name in the archive, file) of a set that is installed in the environment of ``python``."""
    installed = bundle_contents.installed(bundle_contents.search_path(python))
    folder = f"{FOLDER}/{digest_of(packages)}"
    yield f"{folder}/{COMPLETE}", python.parent.parent / COMPLETE
    distributions = [installed[name_of(package)] for package in packages]
    for name, path in bundle_contents.all_files(distributions, for_device=for_device):
        yield f"{folder}/{name}", path


def described(sets: Iterable[Versions]) -> list[dict[str, Any]]:
    """Return the sets as ``bundle.json`` lists them."""
    return [{"digest": digest_of(packages), "packages": list(packages)} for packages in sets]


def bundled_python(packages: Sequence[str]) -> Path | None:
    """Return the Python with these versions that the bundle of this host has; None if labscale is from no bundle.

    Raises:
        WorkerEnvironmentError: the bundle does not have this set.
    """
    folder = path_in(VARIABLE)
    if folder is None:
        return None
    python = folder / digest_of(packages) / "bin" / "python"
    if not os.path.isfile(python):  # noqa: PTH113 - False for any name, even one that is too long
        listed = "; ".join(sorted(_sets_in(folder))) or "no other versions of packages"
        raise WorkerEnvironmentError(
            f"A configuration needs {', '.join(packages)}, which this bundle does not have. It has {listed} ({folder})."
            " On a machine with a network, make the bundle again with a matrix that asks for them (python3 -m nox -s "
            "bundle -- --matrix NAME), or choose other configurations with --case."
        )
    return python


def is_bundled() -> bool:
    """Whether labscale runs from a bundle, which may have other versions of packages."""
    return path_in(VARIABLE) is not None


def require_device(device: Device) -> None:
    """Refuse the CPU from a bundle for GPUs, in which every run would crash once Warp compiles.

    Raises:
        WorkerEnvironmentError: the bundle lacks Warp's compiler for the CPU.
    """
    folder = path_in(VARIABLE)
    compilers = folder.parent / "site/warp/bin" if folder else None
    if device == "cpu" and compilers and compilers.is_dir() and not (compilers / "warp-clang.so").exists():
        raise WorkerEnvironmentError(
            f"This bundle was made for GPUs and lacks Warp's compiler for the CPU ({compilers}/warp-clang.so). Run on a"
            " machine with a GPU, or make the bundle again with --device cpu (python3 -m nox -s bundle -- --help)."
        )


def _sets_in(folder: Path) -> Iterator[str]:
    """Yield the versions of each set; nothing if the folder cannot be read."""
    with contextlib.suppress(OSError):
        for marker in folder.glob(f"*/{COMPLETE}"):
            found = read_json_or_none(marker, dict[str, list[str]]) or {}
            if packages := found.get("packages"):
                yield ", ".join(packages)
