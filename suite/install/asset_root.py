"""Finds a worker's assets: the official ones, or offline ones, which are built once."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from suite.errors import WorkerEnvironmentError
from suite.external import parent_death
from suite.files.cache import cache_root, locked, path_in
from suite.files.paths import import_path
from suite.files.wording import last_lines
from suite.install.pins import sha256
from suite.schema.record import Assets

BUILD_ASSETS: Final = ("-m", "tasks.assets")

# Runs a command with variables added to its environment, here or in a container.
type RunPython = Callable[[Sequence[str], Mapping[str, str]], subprocess.CompletedProcess[str]]


def find_assets(
    assets: Assets,
    *,
    python: Path,
    key: str,
    project_root: Path,
    run: RunPython = parent_death.run,
    on_message: Callable[[str], None],
) -> tuple[Path | None, str | None]:
    """Return root and manifest hash of the assets; build offline ones if they do not exist.

    ``run`` runs ``python`` if it is not on this machine, as in a container. The user's ISAACSIM_ASSET_ROOT is used for
    official assets, and for offline ones if it has our manifest, as in an installed bundle.
    """
    own = path_in("ISAACSIM_ASSET_ROOT")
    if assets == "official":
        return own, None
    if own and (manifest := own / "manifest.json") and os.path.isfile(manifest):  # noqa: PTH113 - False where no access
        return own, _own_sha256(manifest)
    root = offline_root(key, project_root)
    manifest = root / "manifest.json"
    if not manifest.exists():
        with locked(root.with_suffix(".lock"), on_message):
            if not manifest.exists():
                on_message(f"Building the offline assets in {root}")
                _build_assets(root, python=python, project_root=project_root, run=run)
    return root, sha256(manifest)


def _own_sha256(manifest: Path) -> str:
    """Hash the user's own manifest. Raises WorkerEnvironmentError if it cannot be read."""
    try:
        return sha256(manifest)
    except OSError as error:
        raise WorkerEnvironmentError(
            f"{manifest} in ISAACSIM_ASSET_ROOT cannot be read: {error.strerror}. Give access, or unset the variable."
        ) from error


def offline_root(key: str, project_root: Path) -> Path:
    """Return the folder of offline assets, keyed by the worker and the code that builds them."""
    return cache_root() / f"assets-{key}-{sha256(project_root / 'tasks' / 'assets.py')[:12]}"


def _build_assets(root: Path, *, python: Path, project_root: Path, run: RunPython) -> None:
    for abandoned in root.parent.glob(f"{root.name}-*"):  # of a killed build; the lock excludes a running one
        shutil.rmtree(abandoned, ignore_errors=True)
    building = root.with_name(f"{root.name}-building")
    try:
        done = run([str(python), *BUILD_ASSETS, str(building)], import_path(project_root, os.environ.get("PYTHONPATH")))
        if done.returncode != 0 or not (building / "manifest.json").exists():
            raise WorkerEnvironmentError(
                f"{python} {' '.join(BUILD_ASSETS)} could not build the offline assets, exit code {done.returncode}:\n"
                f"{last_lines(done.stderr or done.stdout)}\nCheck the worker environment, or use --assets official."
            )
        if root.exists():  # something else made it, without a manifest
            shutil.rmtree(root)
        building.rename(root)
    finally:
        shutil.rmtree(building, ignore_errors=True)
