"""Prepares the workers that cases need besides that of their campaign's stack (``suite.matrix.own_worker``).

They have its assets, so that the work stays the same, and kernel caches of their own: other versions of Warp or Newton
compile other kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement

from suite.install.bundled_versions import bundled_python
from suite.install.other_versions import digest_of, install_versions, versions_folder
from suite.install.pins import PINS_DIR, sha256
from suite.install.worker import KEY_LENGTH, Worker, kernels_folder, locate_worker, provision_python, worker_pins
from suite.matrix.own_worker import OwnWorker
from suite.schema.record import Stack


def provision_own_worker(
    own: OwnWorker,
    base: Worker,
    *,
    project_root: Path,
    stack: Stack,
    worker_packages: Sequence[str] = (),
    on_message: Callable[[str], None],
) -> Worker:
    """Return a worker that is ready to run; install only what is missing. ``base`` is that of the stack.

    Raises:
        WorkerEnvironmentError: something cannot be installed, does not work with Isaac Lab, or is not in the bundle
            that labscale runs from.
    """
    if bundled := _bundled(own, base):
        bundled.cache_dir.mkdir(exist_ok=True)
        return bundled
    worker = base
    if own.pins is not None:
        python, packages = provision_python(
            project_root=project_root,
            stack="kitless",
            worker_python=None,
            worker_packages=worker_packages,
            pins=own.pins,
            on_message=on_message,
        )
        pins_sha256 = sha256(worker_pins(project_root, stack, own.pins))
        kernels = kernels_folder(pins_sha256[:KEY_LENGTH])
        worker = replace(base, python=python, pins_sha256=pins_sha256, packages=packages, cache_dir=kernels)
    if not own.packages:
        return worker
    python = install_versions(_folder(worker), own.packages, on_message=on_message)
    kernels = _kernels(worker, own)
    kernels.mkdir(exist_ok=True)
    return replace(worker, python=python, cache_dir=kernels)


def locate_own_worker(
    own: OwnWorker, base: Worker, *, project_root: Path, worker_packages: Sequence[str] = ()
) -> Worker:
    """Return where the worker is or will be, for a plan; nothing is installed. ``base`` is where the stack's is.

    Raises:
        WorkerEnvironmentError: labscale runs from a bundle that does not have these versions.
    """
    if bundled := _bundled(own, base):
        return bundled
    worker = base
    if own.pins is not None:
        there = locate_worker(
            project_root=project_root,
            stack="kitless",
            worker_python=None,
            worker_packages=worker_packages,
            pins=own.pins,
        )
        worker = replace(there, asset_root=base.asset_root)
    if not own.packages:
        return worker
    python = versions_folder(_folder(worker), own.packages) / "bin" / "python"
    return replace(worker, python=python, cache_dir=_kernels(worker, own))


def names_of(own: OwnWorker, *, project_root: Path) -> list[str]:
    """Return the distributions that its pins have been made for, such as torchrl."""
    if own.pins is None:
        return []
    return [requirement.name for requirement in requirements_of(project_root / PINS_DIR / f"{own.pins}.in")]


def requirements_of(path: Path) -> list[Requirement]:
    """Return what a file of requirements asks for, without its comments.

    Raises:
        InvalidRequirement: a line is not a requirement.
    """
    lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [Requirement(line) for line in lines if line]


def _bundled(own: OwnWorker, base: Worker) -> Worker | None:
    """Return ``base`` with the versions that the bundle of this host has, which has what other pins have too."""
    python = bundled_python(own.packages) if own.packages else None
    return replace(base, python=python, cache_dir=_kernels(base, own)) if python else None


def _folder(worker: Worker) -> Path:
    return worker.python.parent.parent


def _kernels(worker: Worker, own: OwnWorker) -> Path:
    return worker.cache_dir.with_name(f"{worker.cache_dir.name}-versions-{digest_of(own.packages)}")
