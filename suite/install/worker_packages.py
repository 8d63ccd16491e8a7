"""Adds a user's packages to the worker (``--worker-package``), in a copy of the pinned environment.

The copy consists of hard links, so it takes a second and little disk. The pins are constraints: a package that needs
another version of a pinned one is refused, because its results could not be compared with others'.
"""

import contextlib
import hashlib
import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from suite.errors import UsageError
from suite.external.program import ask
from suite.files.cache import locked
from suite.files.json_file import read_json_or_none, replace_json
from suite.files.toml_file import TomlTable
from suite.install.pins import sha256
from suite.install.worker_environment import COMPLETE, copy_environment, run_uv

PROJECT_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg")
WHEEL: Final = ".whl"
MADE_BY_BUILDS: Final = ("__pycache__", "build", "dist")
SHORT: Final = 12

NEXT_STEP: Final = (
    "The worker's own packages stay as pinned, so that results compare with others'. Where a package needs another "
    "version of one, allow the pinned one in it, or bring a Python with what it needs by --worker-python. Otherwise "
    "check the network, or set UV_DEFAULT_INDEX."
)
INSTALLED: Final = """
import importlib.metadata
answer = [(found.name, found.version) for found in importlib.metadata.distributions() if found.name]
"""


@dataclass(frozen=True, kw_only=True)
class WorkerPackage:
    """One ``--worker-package``."""

    argument: str  # of `uv pip install`
    content: str  # identifies the environment: the requirement, or a hash of all files
    origin: str | None  # the commit or the hash, which results show after name and version; None for a requirement


class Installed(TomlTable):
    """Contents of the copy's marker."""

    names: dict[str, str]  # content of a package -> its name
    added: dict[str, str]  # name -> version of everything beyond the pins


def read_package(text: str) -> WorkerPackage:
    """Read a path or a requirement.

    Raises:
        UsageError: it is neither.

    """
    path = Path(text).expanduser()
    if path.is_file() and path.suffix == WHEEL:
        digest = sha256(path)
        return WorkerPackage(argument=str(path.resolve()), content=digest, origin=f"sha256:{digest[:SHORT]}")
    if path.is_dir():
        if not any((path / name).is_file() for name in PROJECT_FILES):
            raise _refused(text, f"a folder without any of {', '.join(PROJECT_FILES)}")
        digest, commit = _sha256_of_folder(path), _commit(path)
        origin = f"commit {commit[:SHORT]}" if commit else f"sha256:{digest[:SHORT]}"
        return WorkerPackage(argument=str(path.resolve()), content=digest, origin=origin)
    try:
        return WorkerPackage(argument=str(Requirement(text)), content=str(Requirement(text)), origin=None)
    except InvalidRequirement:
        raise _refused(text, "neither a package's folder, nor a wheel, nor a requirement") from None


def _refused(text: str, what: str) -> UsageError:
    return UsageError(
        f"--worker-package {text}: {what}. Allowed are the folder of a package with its pyproject.toml, a file that "
        "ends in .whl, and a requirement such as my-robots==1.2 or 'my-robots @ git+https://host/repository@commit'."
    )


def environment_of(base: Path, packages: Sequence[WorkerPackage]) -> Path:
    """Return the folder of the copy of ``base`` with these packages, in any order."""
    contents = sorted(package.content for package in packages)
    return base.with_name(f"{base.name}-with-{hashlib.sha256(json.dumps(contents).encode()).hexdigest()[:SHORT]}")


def add_packages(
    base: Path, packages: Sequence[WorkerPackage], *, pins_path: Path, on_message: Callable[[str], None]
) -> tuple[Path, tuple[str, ...]]:
    """Return the Python with these packages and those of ``base``, and the packages' descriptions in results.

    Raises:
        WorkerEnvironmentError: they cannot be installed beside the pinned ones.
    """
    environment = environment_of(base, packages)
    python, marker = environment / "bin" / "python", environment / COMPLETE
    with locked(environment.with_suffix(".lock"), on_message):
        installed = read_json_or_none(marker, Installed) if python.exists() else None
        if installed is None:
            if environment.exists():  # an install that was interrupted
                shutil.rmtree(environment)
            listed = ", ".join(package.argument for package in packages)
            on_message(f"Adding {listed} to a copy of the worker environment, {environment}")
            copy_environment(base, environment)
            names = _uv_install(python, packages, pins_path=pins_path)
            installed = Installed(names=names, added=_added(base, python))
            replace_json(installed.model_dump(), marker)
    return python, _described(packages, installed)


def _described(packages: Sequence[WorkerPackage], installed: Installed) -> tuple[str, ...]:
    """Describe the packages for results. The marker has no origins: the same files may be at another commit by now."""
    known = [package for package in packages if package.origin and package.content in installed.names]
    origins = {installed.names[package.content]: package.origin for package in known}
    return tuple(
        f"{name} {version}" + (f" ({origins[name]})" if name in origins else "")
        for name, version in installed.added.items()
    )


def _uv_install(python: Path, packages: Sequence[WorkerPackage], *, pins_path: Path) -> dict[str, str]:
    """Install the packages; return content -> name of those that are files.

    A folder is built each time: uv would use its earlier build even if files have changed.
    """
    names = {}
    with tempfile.TemporaryDirectory(prefix="labscale-packages-") as scratch:
        arguments = []
        for number, package in enumerate(packages):
            argument = package.argument
            if package.origin and not argument.endswith(WHEEL):
                argument = _built(argument, python, Path(scratch, str(number)))
            if package.origin:
                names[package.content] = str(parse_wheel_filename(Path(argument).name)[0])
            arguments.append(argument)
        run_uv(
            "pip", "install", "--python", str(python), "--constraints", str(pins_path), *arguments,
            doing="add the packages of --worker-package to the worker", next_step=NEXT_STEP,
        )  # fmt: skip
    return names


def _built(folder: str, python: Path, out: Path) -> str:
    run_uv(
        "build", "--wheel", "--python", str(python), "--out-dir", str(out), folder,
        doing=f"build {folder}, which --worker-package names", next_step=NEXT_STEP,
    )  # fmt: skip
    return str(next(out.glob(f"*{WHEEL}")))


def _added(base: Path, python: Path) -> dict[str, str]:
    """Name -> version of what the copy has beyond ``base``: the packages and their dependencies."""
    before = _installed(base / "bin" / "python")
    return {name: version for name, version in _installed(python).items() if name not in before}


def _installed(python: Path) -> dict[str, str]:
    """Version of every distribution, sorted by name."""
    return dict(sorted((str(canonicalize_name(name)), version) for name, version in ask(python, INSTALLED)))


def _sha256_of_folder(folder: Path) -> str:
    digest = hashlib.sha256()
    tracked = (_git(folder, "ls-files", "-z", "--cached") or "").split("\0")[:-1]
    for name in sorted(tracked + _untracked(folder)):
        if (folder / name).is_file():
            digest.update(f"{name}\0{sha256(folder / name)}\n".encode())
    return digest.hexdigest()


def _untracked(folder: Path) -> list[str]:
    """Files that git would add, or all files without git; without those that a build makes."""
    listed = _git(folder, "ls-files", "-z", "--others", "--exclude-standard")
    names = (
        listed.split("\0")[:-1]
        if listed is not None
        else [path.relative_to(folder).as_posix() for path in folder.rglob("*")]
    )
    return [name for name in names if not any(_is_made(part) for part in Path(name).parts)]


def _is_made(part: str) -> bool:
    return part.startswith(".") or part in MADE_BY_BUILDS or part.endswith(".egg-info")


def _commit(folder: Path) -> str | None:
    """Return the folder's commit; None if a file in it differs."""
    if _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".") != "" or _untracked(folder):
        return None
    return (_git(folder, "rev-parse", "HEAD") or "").strip() or None


def _git(folder: Path, *arguments: str) -> str | None:
    with contextlib.suppress(OSError):  # git is not there
        done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None
    return None
