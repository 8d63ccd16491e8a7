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

from packaging.utils import canonicalize_name

from suite.errors import WorkerEnvironmentError
from suite.external import parent_death
from suite.external.program import does_not_run, missing
from suite.files.cache import cache_root, locked, path_in
from suite.files.paths import ROOT, import_path
from suite.files.wording import last_lines
from suite.install.bundle_contents import bundled_python
from suite.install.damage import changes
from suite.install.pins import PINS_DIR, PYTHON_VERSION, find_uv, requirements_of, sha256
from suite.install.worker_packages import (
    COMPLETE,
    SHORT,
    add_packages,
    copy_environment,
    digest_of,
    environment_of,
    install_once,
    install_versions,
    installed_in,
    read_package,
    run_uv,
    versions_folder,
)
from suite.matrix.own_worker import OwnWorker
from suite.options.options import Setup
from suite.schema.record import Assets, Stack

INSTALL_DISK_GB: Final = 17.0  # the environment takes 7.5 GB, what uv keeps of its downloads the rest

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
AS_PINNED: Final = Setup()

NEXT_STEP: Final = (
    "Check the network, or set UV_DEFAULT_INDEX to your mirror; a machine without a network installs a bundle "
    "(`nox -s bundle`)."
)


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
    *, stack: Stack = "kitless", setup: Setup = AS_PINNED, on_message: Callable[[str], None]
) -> Worker:
    """Return a worker that is ready to run; install and build only what is missing.

    Packages of the user change neither kernels nor assets, because the packages that make them stay as pinned. Raises
    WorkerEnvironmentError if something is missing that cannot be installed.
    """
    return with_assets(install_worker(stack=stack, setup=setup, on_message=on_message), setup.assets, on_message)


def locate_worker(*, stack: Stack = "kitless", setup: Setup = AS_PINNED, pins: str | None = None) -> Worker:
    """Return where the worker is or will be, for a plan; nothing is installed and nothing needs to exist.

    ``pins`` names a file of pins that is not the stack's, without its ending, for which a user brings no Python.
    """
    pins_sha256, key, python = None, "own", Path("python")
    if pins is None and setup.worker_python is not None:
        python = _program(setup.worker_python)
        with contextlib.suppress(WorkerEnvironmentError):  # `bench` reports what is wrong
            identity = json.dumps([str(python), check_python(python, stack=stack)], sort_keys=True)
            key = f"own-{hashlib.sha256(identity.encode()).hexdigest()[:SHORT]}"  # of its own kernels
    elif pins is not None or stack != "isaacsim":
        pins_path = worker_pins(stack, pins)
        pins_sha256 = sha256(pins_path)
        key = pins_sha256[:SHORT]
        environment = _environment(pins_path)
        if setup.worker_packages:
            environment = environment_of(environment, [read_package(text) for text in setup.worker_packages])
        python = environment / "bin" / "python"
    return Worker(
        python=python,
        pins_sha256=pins_sha256,
        asset_root=asset_root_of(setup.assets, key),
        asset_sha256=None,
        cache_dir=cache_root() / f"kernels-{key}",
    )


def install_worker(
    *,
    stack: Stack = "kitless",
    setup: Setup = AS_PINNED,
    pins: str | None = None,
    on_message: Callable[[str], None],
) -> Worker:
    """Return the worker of ``locate_worker``, installed, perhaps without assets. Raises WorkerEnvironmentError."""
    try:
        cache_root().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkerEnvironmentError(
            f"{cache_root()} cannot be made: {error.strerror}. Set LABSCALE_CACHE to a folder that this user may write"
            f" to, with {INSTALL_DISK_GB:g} GB free."
        ) from error
    if pins is None and setup.worker_python is not None:
        check_python(_program(setup.worker_python), stack=stack)
        return locate_worker(stack=stack, setup=setup)
    packages = [read_package(text) for text in setup.worker_packages]  # first, so that a faulty one installs nothing
    pins_path = worker_pins(stack, pins)
    environment = _environment(pins_path)
    _install(environment, pins_path=pins_path, stack=stack, on_message=on_message)
    added = add_packages(environment, packages, pins_path=pins_path, on_message=on_message) if packages else ()
    return replace(locate_worker(stack=stack, setup=setup, pins=pins), packages=added)


def _environment(pins_path: Path) -> Path:
    key = sha256(pins_path)[:SHORT]
    return cache_root() / (f"worker-{key}" if pins_path.stem == "worker" else f"worker-{key}-{pins_path.stem}")


def worker_pins(stack: Stack, pins: str | None = None) -> Path:
    """Return the requirement file of a stack, or ``pins``. Raises WorkerEnvironmentError for Isaac Sim."""
    if pins is None and stack == "isaacsim":
        raise WorkerEnvironmentError(
            "labscale cannot install Isaac Sim: its wheels are on NVIDIA's own index under NVIDIA's licence. "
            "Run this stack in an Isaac Sim image, or pass the Python of its Isaac Lab with --worker-python."
        )
    return ROOT / PINS_DIR / f"{pins or ('worker' if stack == 'kitless' else stack)}.txt"


def _program(python: Path) -> Path:
    return Path(shutil.which(python) or python).absolute()


def require_python(python: Path) -> None:
    """Raise WorkerEnvironmentError if there is no such program, as ``provision_worker`` would. Starts nothing."""
    program = _program(python)
    try:
        if not program.exists():
            raise missing(program)
    except OSError as error:
        raise does_not_run(program, f"{error.strerror}") from error
    if not program.is_file() or not os.access(program, os.X_OK):
        raise does_not_run(program, "Not a program")


def check_python(python: Path, *, stack: Stack, also: Sequence[str] = ()) -> dict[str, str | None]:
    """Return the versions of what the stack needs under ``python``, and of distributions that are needed ``also``.

    Raises WorkerEnvironmentError, which names all that is missing or differs.
    """
    needed = {**NEEDED[stack], **dict.fromkeys(also)}
    python_version, installed = installed_in(python)
    versions: dict[str, str | None] = dict.fromkeys(needed)
    problems = []
    if not python_version.startswith(f"{PYTHON_VERSION}."):
        problems.append(f"Python is {python_version}, isaaclab 3.0.0 needs {PYTHON_VERSION}")
    for name, wanted in needed.items():
        versions[name], _ = installed.get(canonicalize_name(name), (None, ()))
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


def _install(environment: Path, *, pins_path: Path, stack: Stack, on_message: Callable[[str], None]) -> None:
    """Install ``pins_path`` into the folder ``environment`` unless it is complete.

    If the worker of the stack kitless is complete and as it was released, it is copied, and only what differs is
    installed.
    """
    worker = _environment(worker_pins("kitless"))

    def install(python: Path) -> dict[str, str]:
        if (worker / COMPLETE).exists() and not changes(_site_folders(worker)):
            on_message(f"Installing {pins_path.name} over a copy of the worker environment, {environment}")
            copy_environment(worker, environment)
        else:
            free_gb = shutil.disk_usage(environment.parent).free / 1e9
            if free_gb < INSTALL_DISK_GB:
                raise WorkerEnvironmentError(
                    f"The worker environment needs {INSTALL_DISK_GB:.0f} GB of free disk, {environment.parent} has "
                    f"{free_gb:.1f} GB. Free some, or set LABSCALE_CACHE to a folder on a larger disk."
                )
            on_message(f"Installing the worker environment ({stack}, about 7 GB) into {environment}")
            run_uv(
                "venv", "--python", sys.executable, str(environment),
                doing="create the worker environment", next_step=NEXT_STEP,
            )  # fmt: skip
        # gym and antlr4 are built from source: the pins determine their setuptools too.
        run_uv(
            "pip", "sync", "--python", str(python), "--require-hashes",
            "--build-constraints", str(pins_path), str(pins_path),
            doing="install the worker environment", next_step=NEXT_STEP,
        )  # fmt: skip
        check_python(python, stack=stack)
        # uv does not compare what it kept of an earlier download, which may have been edited since then.
        if changed := changes(_site_folders(environment)):
            names = " ".join(text.partition(":")[0] for text in changed if ":" in text)
            raise WorkerEnvironmentError(
                f"uv's cache has files that were edited: {'; '.join(changed)}. Run `{find_uv()} cache clean {names}` "
                "and the same command again."
            )
        return {"pins_sha256": sha256(pins_path)}

    install_once(environment, install, on_message)


def _site_folders(environment: Path) -> list[Path]:
    return list(environment.glob("lib/python*/site-packages"))


# ---- workers of cases ----


def provision_own_worker(
    own: OwnWorker, base: Worker, *, setup: Setup = AS_PINNED, on_message: Callable[[str], None]
) -> Worker:
    """Return a worker that is ready to run; install only what is missing. ``base`` is that of the stack.

    Raises:
        WorkerEnvironmentError: something cannot be installed, does not work with Isaac Lab, or is not in the bundle
            that labscale runs from.
    """
    worker = locate_own_worker(own, base, setup=setup)
    if not (own.packages and bundled_python(own.packages)):
        changed = install_worker(setup=setup, pins=own.pins, on_message=on_message) if own.pins else base
        worker = replace(worker, packages=changed.packages)
        if own.packages:
            install_versions(changed.python.parent.parent, own.packages, on_message=on_message)
    worker.cache_dir.mkdir(exist_ok=True)
    return replace(worker, asset_sha256=base.asset_sha256)


def locate_own_worker(own: OwnWorker, base: Worker, *, setup: Setup = AS_PINNED) -> Worker:
    """Return where the worker is or will be, for a plan; nothing is installed. ``base`` is where the stack's is.

    Raises:
        WorkerEnvironmentError: labscale runs from a bundle that does not have these versions.
    """
    python, worker = bundled_python(own.packages) if own.packages else None, base
    if own.pins is not None and python is None:  # a bundle has what other pins have too
        worker = replace(locate_worker(setup=setup, pins=own.pins), asset_root=base.asset_root)
    if not own.packages:
        return worker
    kernels = worker.cache_dir.with_name(f"{worker.cache_dir.name}-versions-{digest_of(own.packages)}")
    installed = versions_folder(worker.python.parent.parent, own.packages) / "bin" / "python"
    return replace(worker, python=python or installed, cache_dir=kernels)


def own_package_names(own: OwnWorker) -> list[str]:
    """Return the distributions that its pins have been made for, such as torchrl."""
    return [item.name for item in requirements_of(ROOT / PINS_DIR / f"{own.pins}.in")] if own.pins else []


# ---- assets: the official ones, or offline ones, which are built once ----


BUILD_ASSETS: Final = ("-m", "tasks.assets")

# Runs a command with variables added to its environment, here or in a container.
type RunPython = Callable[[Sequence[str], Mapping[str, str]], subprocess.CompletedProcess[str]]


def asset_root_of(assets: Assets, key: str) -> Path | None:
    """Return where the assets are or will be; None for Isaac Lab's own default.

    The user's ISAACSIM_ASSET_ROOT is used for official assets, and for offline ones if it has our manifest, as in an
    installed bundle. Otherwise offline assets have a folder for the worker, by its ``key``, and the code that builds
    them: a change builds again.
    """
    own = path_in("ISAACSIM_ASSET_ROOT")
    if assets == "official" or (own and os.path.isfile(own / "manifest.json")):  # noqa: PTH113 - False where no access
        return own
    tasks = ROOT / "tasks"
    digest = hashlib.sha256()
    for source in sorted({*tasks.glob("assets*.py"), *tasks.glob("assets/**/*.py")}):
        digest.update(f"{source.relative_to(tasks)}\0{sha256(source)}\n".encode())
    return cache_root() / f"assets-{key}-{digest.hexdigest()[:SHORT]}"


def with_assets(
    worker: Worker, assets: Assets, on_message: Callable[[str], None], *, run: RunPython = parent_death.run
) -> Worker:
    """Return the worker with its assets and a folder for its kernels; build offline assets that do not exist.

    ``run`` runs the worker's Python if it is not on this machine. Raises WorkerEnvironmentError as ``build_assets``.
    """
    worker.cache_dir.mkdir(exist_ok=True)
    if worker.asset_root is None or assets == "official":
        return worker
    manifest = worker.asset_root / "manifest.json"
    if worker.asset_root != path_in("ISAACSIM_ASSET_ROOT"):  # the user's own are never built: it replaces the folder
        build_assets(worker.asset_root, python=worker.python, run=run, on_message=on_message)
    try:
        return replace(worker, asset_sha256=sha256(manifest))
    except OSError as error:
        raise WorkerEnvironmentError(
            f"The assets' {manifest} cannot be read: {error.strerror}. Give access, or name other assets with"
            " ISAACSIM_ASSET_ROOT."
        ) from error


def build_assets(
    root: Path, *, python: Path, run: RunPython = parent_death.run, on_message: Callable[[str], None]
) -> None:
    """Build the offline assets in ``root``, unless they are there. Raises WorkerEnvironmentError if that fails."""
    if (root / "manifest.json").exists():
        return
    building = root.with_name(f"{root.name}-building")
    command = [str(python), *BUILD_ASSETS, str(building)]
    with locked(root.with_suffix(".lock"), on_message):
        if (root / "manifest.json").exists():  # another process built them while this one waited
            return
        on_message(f"Building the offline assets in {root}")
        for abandoned in (root, building):  # of a killed build, or something else that made it without a manifest
            shutil.rmtree(abandoned, ignore_errors=True)
        try:
            done = run(command, import_path(ROOT, os.environ.get("PYTHONPATH")))
            if done.returncode != 0 or not (building / "manifest.json").exists():
                raise WorkerEnvironmentError(
                    f"{python} {' '.join(BUILD_ASSETS)} could not build the offline assets, exit code "
                    f"{done.returncode}:\n{last_lines(done.stderr or done.stdout)}\n"
                    "Check the worker environment, or use --assets official."
                )
            building.rename(root)
        finally:
            shutil.rmtree(building, ignore_errors=True)
