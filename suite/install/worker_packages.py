"""Changes copies of the worker environment: adds a user's packages, or installs other versions of some packages.

A copy consists of hard links, so it takes a second and little disk.

For packages of a user (``--worker-package``) the pins are constraints: one that needs another version of a pinned one
is refused, because its results could not be compared with others'. Cases with ``with_packages`` want other versions.
Isaac Lab's metadata asks for one exact version of Newton, Warp and torch, so that a resolver refuses any other: exactly
the given versions are installed, without their dependencies, and Isaac Lab's own requirements of them are set aside.
What any other package requires must still be there, and Isaac Lab must import.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from suite.errors import UsageError, WorkerEnvironmentError
from suite.external import parent_death
from suite.external.program import answer_of
from suite.files.cache import locked
from suite.files.json_file import read_json_or_none, replace_json
from suite.files.toml_file import TomlTable
from suite.files.wording import last_lines
from suite.install.pins import find_uv, sha256

COMPLETE: Final = "complete.json"  # written last: without it the environment is installed again
FACTS: Final = "tasks"  # in an environment: facts about its tasks (suite.campaign.planning.registered_task), not copied
SHORT: Final = 12  # digits of a hash in a name
DISTRIBUTIONS: Final = """
import importlib.metadata, platform
items = [[item.name, item.version, item.requires or []] for item in importlib.metadata.distributions() if item.name]
answer = [platform.python_version(), items]
"""

type Distributions = Mapping[str, tuple[str, Sequence[str]]]  # name -> version and requirements


def run_uv(*arguments: str, doing: str, next_step: str) -> None:
    """Run uv with the user's own settings for index, proxy and certificates.

    Raises:
        WorkerEnvironmentError: uv failed. ``doing`` completes "uv could not", ``next_step`` ends the message.
    """
    # A terminal shows uv's own progress of gigabytes; a log gets uv's output only if it fails.
    stderr = None if sys.stderr.isatty() else subprocess.PIPE
    done = subprocess.run(
        [find_uv(), *arguments],
        # Files of a worker are no hard links into uv's cache, where an edit for another project would change them.
        env={**os.environ, "UV_LINK_MODE": "copy"},
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        check=False,
        preexec_fn=parent_death.end_with_parent,
    )
    if done.returncode != 0:
        output = last_lines(done.stderr or "see its output above")
        raise WorkerEnvironmentError(f"uv could not {doing}, exit code {done.returncode}:\n{output}\n{next_step}")


def install_once(
    environment: Path,
    install: Callable[[Path], Mapping[str, Any]],
    on_message: Callable[[str], None],
    *,
    is_complete: Callable[[Path], bool] = Path.exists,
) -> Path:
    """Return the Python of an environment.

    ``install`` gets this path, makes the environment unless it is complete, and returns the content of its marker,
    which ``is_complete`` judges.
    """
    python, marker = environment / "bin" / "python", environment / COMPLETE
    if is_complete(marker) and python.exists():
        return python
    with locked(environment.with_suffix(".lock"), on_message):
        if is_complete(marker) and python.exists():  # another process installed it while this one waited
            return python
        if environment.exists():  # an install that was interrupted
            shutil.rmtree(environment)
        try:
            replace_json(install(python), marker)
        except WorkerEnvironmentError:
            shutil.rmtree(environment, ignore_errors=True)
            raise
    return python


def copy_environment(base: Path, environment: Path) -> None:
    """Copy an environment by hard links.

    Raises:
        WorkerEnvironmentError: it cannot be copied.
    """
    try:
        shutil.copytree(
            base,
            environment,
            symlinks=True,
            copy_function=_link,
            ignore=lambda folder, _: (COMPLETE, FACTS) if Path(folder) == base else (),
        )
    except OSError as error:
        raise WorkerEnvironmentError(
            f"The worker environment could not be copied to {environment}: {error.strerror or error}. Free some disk, "
            "or set LABSCALE_CACHE to a folder on a larger one."
        ) from error


def _link(source: str, target: str) -> None:
    """Make a hard link, or a copy on a file system without them."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def installed_in(python: Path) -> tuple[str, Distributions]:
    """Return the version of an environment's Python, and everything that is installed there."""
    version, items = answer_of(python, DISTRIBUTIONS)
    # The first of a name is the one that Python imports.
    return version, {str(canonicalize_name(name)): (there, requires) for name, there, requires in reversed(items)}


def digest_of(names: Sequence[str]) -> str:
    """Identify packages, in any order, in names of folders."""
    return hashlib.sha256(json.dumps(sorted(names)).encode()).hexdigest()[:SHORT]


# ---- packages of a user (--worker-package) ----


PROJECT_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg")
WHEEL: Final = ".whl"
MADE_BY_BUILDS: Final = ("__pycache__", "build", "dist")

NEXT_STEP: Final = (
    "The worker's own packages stay as pinned, so that results compare with others'. Where a package needs another "
    "version of one, allow the pinned one in it, or bring a Python with what it needs by --worker-python. Otherwise "
    "check the network, or set UV_DEFAULT_INDEX."
)


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
    what = "neither a package's folder, nor a wheel, nor a requirement"
    if path.is_dir():
        if any((path / name).is_file() for name in PROJECT_FILES):
            digest, commit = _hash_and_commit(path)
            origin = f"commit {commit[:SHORT]}" if commit else f"sha256:{digest[:SHORT]}"
            return WorkerPackage(argument=str(path.resolve()), content=digest, origin=origin)
        what = f"a folder without any of {', '.join(PROJECT_FILES)}"
    else:
        with contextlib.suppress(InvalidRequirement):
            requirement = str(Requirement(text))
            return WorkerPackage(argument=requirement, content=requirement, origin=None)
    raise UsageError(
        f"--worker-package {text}: {what}. Allowed are the folder of a package with its pyproject.toml, a file that "
        "ends in .whl, and a requirement such as my-robots==1.2 or 'my-robots @ git+https://host/repository@commit'."
    )


def environment_of(base: Path, packages: Sequence[WorkerPackage]) -> Path:
    """Return the folder of the copy of ``base`` with these packages, in any order."""
    return base.with_name(f"{base.name}-with-{digest_of([package.content for package in packages])}")


def add_packages(
    base: Path, packages: Sequence[WorkerPackage], *, pins_path: Path, on_message: Callable[[str], None]
) -> tuple[str, ...]:
    """Install the packages into a copy of ``base``; return their descriptions in results.

    Raises:
        WorkerEnvironmentError: they cannot be installed beside the pinned ones.
    """
    environment = environment_of(base, packages)

    def install(python: Path) -> dict[str, dict[str, str]]:
        listed = ", ".join(package.argument for package in packages)
        on_message(f"Adding {listed} to a copy of the worker environment, {environment}")
        copy_environment(base, environment)
        names = _uv_install(python, packages, pins_path=pins_path)
        before, after = (installed_in(folder / "bin" / "python")[1] for folder in (base, environment))
        return {"names": names, "added": {name: after[name][0] for name in sorted(after.keys() - before.keys())}}

    def is_complete(marker: Path) -> bool:
        return read_json_or_none(marker, Installed) is not None  # it may be damaged, or of another labscale

    install_once(environment, install, on_message, is_complete=is_complete)
    installed = Installed.model_validate_json((environment / COMPLETE).read_bytes())
    # The marker has no origins: the same files may be at another commit by now.
    origins = {installed.names[package.content]: package.origin for package in packages if package.origin}
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
                out = Path(scratch, str(number))
                run_uv(
                    "build", "--wheel", "--python", str(python), "--out-dir", str(out), argument,
                    doing=f"build {argument}, which --worker-package names", next_step=NEXT_STEP,
                )  # fmt: skip
                argument = str(next(out.glob(f"*{WHEEL}")))
            if package.origin:
                names[package.content] = str(parse_wheel_filename(Path(argument).name)[0])
            arguments.append(argument)
        run_uv(
            "pip", "install", "--python", str(python), "--constraints", str(pins_path), *arguments,
            doing="add the packages of --worker-package to the worker", next_step=NEXT_STEP,
        )  # fmt: skip
    return names


def _hash_and_commit(folder: Path) -> tuple[str, str | None]:
    """Return a hash of the folder's files, without those that a build makes, and its commit unless a file differs."""
    tracked = _git(folder, "ls-files", "-z", "--cached")
    others = _git(folder, "ls-files", "-z", "--others", "--exclude-standard")
    if others is None:  # no git
        others = "\0".join(path.relative_to(folder).as_posix() for path in folder.rglob("*"))

    def is_made(part: str) -> bool:
        return part.startswith(".") or part in MADE_BY_BUILDS or part.endswith(".egg-info")

    untracked = [name for name in others.split("\0") if name and not any(map(is_made, Path(name).parts))]
    digest = hashlib.sha256()
    for name in sorted([*(tracked or "").split("\0"), *untracked]):
        if (folder / name).is_file():
            digest.update(f"{name}\0{sha256(folder / name)}\n".encode())
    is_as_committed = not untracked and _git(folder, "status", "--porcelain", "--untracked-files=no", "--", ".") == ""
    commit = _git(folder, "rev-parse", "HEAD") if is_as_committed else None
    return digest.hexdigest(), commit and commit.strip()


def _git(folder: Path, *arguments: str) -> str | None:
    with contextlib.suppress(OSError):  # git is not there
        done = parent_death.run(["git", "-C", str(folder), *arguments])
        return done.stdout if done.returncode == 0 else None
    return None


# ---- other versions (with_packages) ----


ISAACLAB: Final = "isaaclab "  # whose requirements, alone, are set aside
IMPORTED: Final = (
    "isaaclab_tasks",
    "isaaclab_newton.physics.newton_manager",
    "isaaclab_newton.physics.mjwarp_manager",
    "isaaclab_newton.assets.articulation.articulation",
    "isaaclab_rl.rsl_rl.vecenv_wrapper",
    "isaaclab_rl.rl_games.rl_games",
    "isaaclab_rl.skrl",
    "isaaclab_rl.sb3",
)
TAKE_OTHERS: Final = (
    "Check that the index has these versions, and the network, or set UV_DEFAULT_INDEX to your mirror. Otherwise take "
    "other versions."
)


def versions_folder(base: Path, packages: Sequence[str]) -> Path:
    """Return the folder of the copy of ``base`` with these versions."""
    return base.with_name(f"{base.name}-versions-{digest_of(packages)}")


def install_versions(base: Path, packages: Sequence[str], *, on_message: Callable[[str], None]) -> Path:
    """Return the Python of a copy of ``base`` with these versions (``name==version``), installed if it is missing.

    Raises:
        WorkerEnvironmentError: the index lacks them, something they need is not there, or Isaac Lab does not import.
    """
    environment, listed = versions_folder(base, packages), ", ".join(packages)

    def install(python: Path) -> dict[str, list[str]]:
        python_version, installed = installed_in(base / "bin" / "python")
        before = unmet(python_version, installed)
        wanted = {name: (version, ()) for name, _, version in (package.partition("==") for package in packages)}
        _require_met(unmet(python_version, {**installed, **wanted}) - before, listed)  # before anything is downloaded
        on_message(f"Installing {listed} over a copy of the worker environment, {environment}")
        copy_environment(base, environment)
        run_uv(
            "pip", "install", "--python", str(python), "--no-deps", *packages,
            doing=f"install {listed} into a copy of the worker", next_step=TAKE_OTHERS,
        )  # fmt: skip
        aside = _require_met(unmet(*installed_in(python)) - before, listed)
        command = [str(python), "-c", "".join(f"import {module}\n" for module in IMPORTED)]
        done = parent_death.run(command, {"CUDA_VISIBLE_DEVICES": ""})
        if done.returncode != 0:
            raise WorkerEnvironmentError(
                f"Isaac Lab 3.0.0 does not import with {listed}: {last_lines(done.stderr, 1)}. Take other versions, or "
                "leave these configurations out."
            )
        for need in aside:
            on_message(f"Set aside: {need}")
        return {"packages": sorted(packages), "set_aside": aside}

    return install_once(environment, install, on_message)


def _require_met(needs: set[str], listed: str) -> list[str]:
    """Return the requirements of Isaac Lab, in order. Raises WorkerEnvironmentError if other packages have some."""
    if others := sorted(need for need in needs if not need.startswith(ISAACLAB)):
        raise WorkerEnvironmentError(
            f"{listed} cannot be combined with the worker of Isaac Lab 3.0.0: {'; '.join(others)}. Add a version of "
            "each that is needed in the same way (name==version), or take other versions."
        )
    return sorted(needs)


def unmet(python_version: str, installed: Distributions) -> set[str]:
    """Return every requirement that is not fulfilled, those of extras included that others ask for."""
    python = {"python_version": ".".join(python_version.split(".")[:2]), "python_full_version": python_version}
    extras = {name: {""} for name in installed}
    left, needs = [(name, "") for name in installed], set[str]()
    while left:
        name, extra = left.pop()
        version, requires = installed[name]
        for need in _readable(requires):
            if need.marker and not need.marker.evaluate({**python, "extra": extra}):
                continue
            other = canonicalize_name(need.name)
            there = installed[other][0] if other in installed else None
            if there is None or not need.specifier.contains(there, prereleases=True):
                need.marker = None
                needs.add(f"{name} {version} needs {need} and finds {there or 'none'}")
            if other in installed:
                left += [(other, new) for new in sorted(need.extras - extras[other])]
                extras[other] |= need.extras
    return needs


def _readable(requires: Sequence[str]) -> Iterator[Requirement]:
    """Old packages have requirements of an earlier syntax, which are left out."""
    for text in requires:
        with contextlib.suppress(InvalidRequirement):
            yield Requirement(text)
