"""Installs the worker environment: a virtual environment with Isaac Lab, outside the checkout, and its local assets.

Both are cached and reused while the pins are unchanged::

    CACHE/worker-<pins>[-ovphysx]/complete.json    written last: without it the environment is installed again
    CACHE/worker-<pins>-<name>/                    of other pins: RL libraries that need them, the viewer of `watch`;
                                                   a copy of the worker, if that is there, with what differs
    CACHE/worker-…-with-<packages>/                a copy with the packages of --worker-package (worker_packages)
    CACHE/worker-…-versions-<packages>/            a copy with other versions (worker_packages), kernels likewise
    CACHE/assets-<pins>-<sources>/manifest.json    renamed into place when complete
    CACHE/kernels-<pins>/                          compiled kernels

A case may need another worker than that of its campaign's stack (``suite.matrix.own_worker``). It has the assets of the
stack's, so that the work stays the same, and a kernel cache of its own: other versions of Warp or Newton compile other
kernels.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from suite.errors import WorkerEnvironmentError
from suite.external import parent_death
from suite.external.program import ask, does_not_run, missing
from suite.files.cache import cache_root, locked, path_in
from suite.files.json_file import replace_json
from suite.files.paths import import_path
from suite.files.wording import last_lines
from suite.install.bundle_contents import bundled_python
from suite.install.damage import changes
from suite.install.pins import PINS_DIR, PYTHON_VERSION, find_uv, requirements_of, sha256
from suite.install.worker_packages import (
    COMPLETE,
    add_packages,
    copy_environment,
    digest_of,
    environment_of,
    install_versions,
    read_package,
    run_uv,
    versions_folder,
)
from suite.matrix.own_worker import OwnWorker
from suite.schema.record import Assets, Stack

INSTALL_DISK_GB: Final = 17.0  # the environment takes 7.5 GB, what uv keeps of its downloads the rest
KEY_LENGTH: Final = 12  # digits of a hash in a folder's name

# What a worker imports, and the version that this suite's adapters and overrides were written for.
_KITLESS: Final[Mapping[str, str | None]] = {
    "isaaclab": "3.0.0", "torch": None, "newton": None, "warp-lang": None, "gymnasium": None, "gym": None,
    "rl-games": None, "rsl-rl-lib": None, "skrl": None, "stable-baselines3": None, "psutil": None,
}  # fmt: skip
NEEDED: Final[Mapping[Stack, Mapping[str, str | None]]] = {
    "kitless": _KITLESS,
    "ovphysx": {**_KITLESS, "ovphysx": None, "ovstage": None},
    # Images of Isaac Sim have Isaac Lab as an editable install with its own version numbers.
    "isaacsim": {"isaaclab": None, "torch": None, "rl-games": None, "rsl-rl-lib": None, "psutil": None},
}

NEXT_STEP: Final = (
    "Check the network, or set UV_DEFAULT_INDEX to your mirror; a host without a network installs a bundle "
    "(`nox -s bundle`)."
)
INSPECT: Final = """
import importlib.metadata, sys
versions = {}
for name in sys.argv[1:]:
    try:
        versions[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        versions[name] = None
answer = {"python": ".".join(map(str, sys.version_info[:3])), "versions": versions}
"""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """The worker of a launch."""

    python: Path
    pins_sha256: str | None  # None for a user's own Python
    asset_root: Path | None  # value of ISAACSIM_ASSET_ROOT; None keeps Isaac Lab's own default
    asset_sha256: str | None  # of the asset manifest
    cache_dir: Path  # for compiled kernels; exists
    packages: tuple[str, ...] = ()  # of --worker-package, as results name them


def provision_worker(
    *,
    project_root: Path,
    stack: Stack,
    worker_python: Path | None,
    assets: Assets,
    on_message: Callable[[str], None],
    worker_packages: Sequence[str] = (),
) -> Worker:
    """Return a worker that is ready to run; install and build only what is missing.

    ``worker_packages`` change neither kernels nor assets, because the packages that make them stay as pinned. Raises
    WorkerEnvironmentError if something is missing that cannot be installed.
    """
    python, packages = provision_python(
        project_root=project_root,
        stack=stack,
        worker_python=worker_python,
        worker_packages=worker_packages,
        on_message=on_message,
    )
    pins_sha256 = None if worker_python else sha256(worker_pins(project_root, stack))
    key = pins_sha256[:KEY_LENGTH] if pins_sha256 else _own_key(python, check_python(python, stack=stack))
    asset_root, asset_sha256 = find_assets(
        assets, python=python, key=key, project_root=project_root, on_message=on_message
    )
    kernels = cache_root() / f"kernels-{key}"
    kernels.mkdir(exist_ok=True)
    return Worker(
        python=python,
        pins_sha256=pins_sha256,
        asset_root=asset_root,
        asset_sha256=asset_sha256,
        cache_dir=kernels,
        packages=packages,
    )


def provision_python(
    *,
    project_root: Path,
    stack: Stack,
    worker_python: Path | None,
    worker_packages: Sequence[str] = (),
    pins: str | None = None,
    on_message: Callable[[str], None],
) -> tuple[Path, tuple[str, ...]]:
    """Return the worker's Python, installed if it is missing, and the packages that a user added to it.

    ``pins`` names a file of pins that is not the stack's, without its ending.

    Raises WorkerEnvironmentError as ``provision_worker`` does.
    """
    cache = cache_root()
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkerEnvironmentError(
            f"{cache} cannot be made: {error.strerror}. Set LABSCALE_CACHE to a folder that this user may write to,"
            f" with {INSTALL_DISK_GB:g} GB free."
        ) from error
    if worker_python is not None:
        check_python(_found(worker_python), stack=stack)
        return _found(worker_python), ()
    packages = [read_package(text) for text in worker_packages]  # first, so that a faulty one installs nothing
    pins_path = worker_pins(project_root, stack, pins)
    environment = _environment(cache, pins_path)
    worker = _environment(cache, worker_pins(project_root, "kitless"))
    python = install(environment, pins_path=pins_path, stack=stack, worker=worker, on_message=on_message)
    if not packages:
        return python, ()
    return add_packages(environment, packages, pins_path=pins_path, on_message=on_message)


def _environment(cache: Path, pins_path: Path) -> Path:
    key = sha256(pins_path)[:KEY_LENGTH]
    return cache / (f"worker-{key}" if pins_path.stem == "worker" else f"worker-{key}-{pins_path.stem}")


def worker_pins(project_root: Path, stack: Stack, pins: str | None = None) -> Path:
    """Return the requirement file of a stack, or that with the name ``pins``."""
    if pins is not None:
        return project_root / PINS_DIR / f"{pins}.txt"
    if stack == "isaacsim":
        raise WorkerEnvironmentError(
            "labscale cannot install Isaac Sim: its wheels are on NVIDIA's own index under NVIDIA's licence. "
            "Run this stack in an Isaac Sim image, or pass the Python of its Isaac Lab with --worker-python."
        )
    return project_root / PINS_DIR / ("worker.txt" if stack == "kitless" else f"{stack}.txt")


def _found(python: Path) -> Path:
    return Path(shutil.which(python) or python).absolute()


def require_python(python: Path) -> None:
    """Raise WorkerEnvironmentError if there is no such program, as ``provision_worker`` would. Starts nothing."""
    found = _found(python)
    try:
        if not found.exists():
            raise missing(found)
    except OSError as error:
        raise does_not_run(found, f"{error.strerror}") from error
    if not found.is_file() or not os.access(found, os.X_OK):
        raise does_not_run(found, "Not a program")


def _own_key(python: Path, versions: Mapping[str, str | None]) -> str:
    """Return a key for kernels of a user's Python, which differ from another Python's or other versions'."""
    text = json.dumps([str(python), versions], sort_keys=True)
    return "own-" + hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


def check_python(python: Path, *, stack: Stack, also: Sequence[str] = ()) -> dict[str, str | None]:
    """Return the versions of what the stack needs under ``python``, and of distributions that are needed ``also``.

    The error names all that is missing or differs.
    """
    needed = {**NEEDED[stack], **dict.fromkeys(also)}
    found = ask(python, INSPECT, *needed)
    versions: dict[str, str | None] = found["versions"]
    problems = []
    if not found["python"].startswith(f"{PYTHON_VERSION}."):
        problems.append(f"Python is {found['python']}, isaaclab 3.0.0 needs {PYTHON_VERSION}")
    for name, wanted in needed.items():
        if versions[name] is None:
            problems.append(f"{name}{f'=={wanted}' if wanted else ''} is missing")
        elif wanted and versions[name] != wanted:
            problems.append(f"{name} is {versions[name]}, needed is {wanted}")
    if problems:
        listed = "\n".join(f"  - {problem}" for problem in problems)
        raise WorkerEnvironmentError(
            f"The worker's Python {python} cannot run the stack {stack}:\n{listed}\n"
            "Install these there (exact versions: containers/pins/*.txt), set PYTHONPATH if they are in a folder of "
            "their own, or leave --worker-python out to have an environment installed."
        )
    return versions


def install(
    environment: Path, *, pins_path: Path, stack: Stack, worker: Path, on_message: Callable[[str], None]
) -> Path:
    """Install ``pins_path`` into the folder ``environment`` unless it is complete, and return its Python.

    If ``worker`` is complete and as it was released, it is copied, and only what differs is installed.
    """
    python = environment / "bin" / "python"
    marker = environment / COMPLETE
    if marker.exists() and python.exists():
        return python
    with locked(environment.with_suffix(".lock"), on_message):
        if marker.exists() and python.exists():  # another process installed it while this one waited
            return python
        if environment.exists():  # an install that was interrupted
            shutil.rmtree(environment)
        if (worker / COMPLETE).exists() and not changes(_site_folders(worker)):
            on_message(f"Installing {pins_path.name} over a copy of the worker environment, {environment}")
            copy_environment(worker, environment)
        else:
            _create(environment, stack=stack, on_message=on_message)
        # gym and antlr4 are built from source: the pins determine their setuptools too.
        run_uv(
            "pip", "sync", "--python", str(python), "--require-hashes",
            "--build-constraints", str(pins_path), str(pins_path),
            doing="install the worker environment", next_step=NEXT_STEP,
        )  # fmt: skip
        versions = check_python(python, stack=stack)
        _require_as_released(environment)
        replace_json({"pins_sha256": sha256(pins_path), "versions": versions}, marker)
    return python


def _create(environment: Path, *, stack: Stack, on_message: Callable[[str], None]) -> None:
    """Create an environment without packages, where there is disk for all of them."""
    free_gb = shutil.disk_usage(environment.parent).free / 1e9
    if free_gb < INSTALL_DISK_GB:
        raise WorkerEnvironmentError(
            f"The worker environment needs {INSTALL_DISK_GB:.0f} GB of free disk, {environment.parent} has "
            f"{free_gb:.1f} GB. Free some, or set LABSCALE_CACHE to a folder on a larger disk."
        )
    python = find_python()
    on_message(f"Installing the worker environment ({stack}, about 7 GB) into {environment}")
    run_uv(
        "venv", "--python", str(python), str(environment), doing="create the worker environment", next_step=NEXT_STEP
    )


def _site_folders(environment: Path) -> list[Path]:
    return list(environment.glob("lib/python*/site-packages"))


def _require_as_released(environment: Path) -> None:
    """Refuse files that uv kept from an earlier download and that were edited since then: uv does not compare them."""
    if changed := changes(_site_folders(environment)):
        names = " ".join(text.partition(":")[0] for text in changed if ":" in text)
        raise WorkerEnvironmentError(
            f"uv's cache has files that were edited: {'; '.join(changed)}. Run `{find_uv()} cache clean {names}` and "
            "the same command again."
        )


def find_python(candidate: Path | None = None) -> Path:
    """Return a Python for Isaac Lab: ``candidate`` (default: this one), or one that uv finds."""
    candidate = candidate or Path(sys.executable)
    done = subprocess.run([candidate, "-V"], capture_output=True, text=True, check=False)
    version = done.stdout.strip().removeprefix("Python ")
    if version.startswith(f"{PYTHON_VERSION}."):
        return candidate
    command = [find_uv(), "python", "find", "--no-python-downloads", "--system", PYTHON_VERSION]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode == 0:
        return Path(found.stdout.strip())
    raise WorkerEnvironmentError(
        f"Isaac Lab 3.0.0 needs Python {PYTHON_VERSION}; {candidate} is {version or 'not a Python'} and no other is "
        f"there. Install one, for example with `uv python install {PYTHON_VERSION}` or your distribution's packages, "
        "or pass --worker-python."
    )


def locate_worker(
    *,
    project_root: Path,
    stack: Stack,
    worker_python: Path | None,
    worker_packages: Sequence[str] = (),
    pins: str | None = None,
) -> Worker:
    """Return where the worker is or will be, for a plan; nothing is installed and nothing needs to exist."""
    cache, own_assets = cache_root(), path_in("ISAACSIM_ASSET_ROOT")
    if worker_python is None and stack != "isaacsim":
        pins_path = worker_pins(project_root, stack, pins)
        pins_sha256 = sha256(pins_path)
        key = pins_sha256[:KEY_LENGTH]
        environment = _environment(cache, pins_path)
        if worker_packages:
            environment = environment_of(environment, [read_package(text) for text in worker_packages])
        python = environment / "bin" / "python"
    else:
        pins_sha256, key, python = None, "own", Path("python")
        if worker_python is not None:
            python = _found(worker_python)
            with contextlib.suppress(WorkerEnvironmentError):  # `bench` reports what is wrong
                key = _own_key(python, check_python(python, stack=stack))
    return Worker(
        python=python,
        pins_sha256=pins_sha256,
        asset_root=own_assets or offline_root(key, project_root),
        asset_sha256=None,
        cache_dir=cache / f"kernels-{key}",
    )


# ---- workers of cases ----


def provision_own_worker(
    own: OwnWorker,
    base: Worker,
    *,
    project_root: Path,
    worker_packages: Sequence[str] = (),
    on_message: Callable[[str], None],
) -> Worker:
    """Return a worker that is ready to run; install only what is missing. ``base`` is that of the stack.

    Raises:
        WorkerEnvironmentError: something cannot be installed, does not work with Isaac Lab, or is not in the bundle
            that labscale runs from.
    """
    worker = locate_own_worker(own, base, project_root=project_root, worker_packages=worker_packages)
    if own.packages and bundled_python(own.packages):
        worker.cache_dir.mkdir(exist_ok=True)
        return worker
    python, packages = base.python, base.packages
    if own.pins is not None:
        python, packages = provision_python(
            project_root=project_root,
            stack="kitless",
            worker_python=None,
            worker_packages=worker_packages,
            pins=own.pins,
            on_message=on_message,
        )
    if own.packages:
        install_versions(python.parent.parent, own.packages, on_message=on_message)
    worker.cache_dir.mkdir(exist_ok=True)
    return replace(worker, asset_sha256=base.asset_sha256, packages=packages)


def locate_own_worker(
    own: OwnWorker, base: Worker, *, project_root: Path, worker_packages: Sequence[str] = ()
) -> Worker:
    """Return where the worker is or will be, for a plan; nothing is installed. ``base`` is where the stack's is.

    Raises:
        WorkerEnvironmentError: labscale runs from a bundle that does not have these versions.
    """
    python, worker = bundled_python(own.packages) if own.packages else None, base
    if own.pins is not None and python is None:  # a bundle has what other pins have too
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
    kernels = worker.cache_dir.with_name(f"{worker.cache_dir.name}-versions-{digest_of(own.packages)}")
    installed = versions_folder(worker.python.parent.parent, own.packages) / "bin" / "python"
    return replace(worker, python=python or installed, cache_dir=kernels)


def names_of(own: OwnWorker, *, project_root: Path) -> list[str]:
    """Return the distributions that its pins have been made for, such as torchrl."""
    if own.pins is None:
        return []
    return [requirement.name for requirement in requirements_of(project_root / PINS_DIR / f"{own.pins}.in")]


# ---- assets: the official ones, or offline ones, which are built once ----


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
        try:
            return own, sha256(manifest)
        except OSError as error:
            raise WorkerEnvironmentError(
                f"{manifest} in ISAACSIM_ASSET_ROOT cannot be read: {error.strerror}. Give access, or unset the"
                " variable."
            ) from error
    root = offline_root(key, project_root)
    manifest = root / "manifest.json"
    if not manifest.exists():
        with locked(root.with_suffix(".lock"), on_message):
            if not manifest.exists():
                on_message(f"Building the offline assets in {root}")
                _build_assets(root, python=python, project_root=project_root, run=run)
    return root, sha256(manifest)


def offline_root(key: str, project_root: Path) -> Path:
    """Return the folder of offline assets, keyed by the worker and the code that builds them: a change builds again."""
    tasks = project_root / "tasks"
    digest = hashlib.sha256()
    for source in sorted({*tasks.glob("assets*.py"), *tasks.glob("assets/**/*.py")}):
        digest.update(f"{source.relative_to(tasks)}\0{sha256(source)}\n".encode())
    return cache_root() / f"assets-{key}-{digest.hexdigest()[:12]}"


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
