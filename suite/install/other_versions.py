"""Installs other versions over a copy of the worker, for cases with ``with_packages``.

Isaac Lab's metadata asks for one exact version of Newton, Warp and torch, so that a resolver refuses any other. Here
that is the purpose: exactly the given versions are installed, without their dependencies, and Isaac Lab's own
requirements of them are set aside. What any other package requires must still be there, and Isaac Lab must import.
"""

import contextlib
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from suite.errors import WorkerEnvironmentError
from suite.external import parent_death
from suite.external.program import ask
from suite.files.cache import locked
from suite.files.json_file import replace_json
from suite.files.wording import last_lines
from suite.install.worker_environment import COMPLETE, copy_environment, run_uv

SHORT: Final = 12
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
NEXT_STEP: Final = (
    "Check that the index has these versions, and the network, or set UV_DEFAULT_INDEX to your mirror. Otherwise take "
    "other versions."
)
DISTRIBUTIONS: Final = """
import importlib.metadata, platform
found = [[one.name, one.version, one.requires or []] for one in importlib.metadata.distributions() if one.name]
answer = [platform.python_version(), found]
"""

type Installed = Mapping[str, tuple[str, Sequence[str]]]  # name -> version and requirements


@dataclass(frozen=True, kw_only=True)
class Unmet:
    """A requirement of an installed package that is not fulfilled."""

    name: str
    version: str
    needs: str
    found: str | None  # the version that is there

    def __str__(self) -> str:
        return f"{self.name} {self.version} needs {self.needs} and finds {self.found or 'none'}"


def digest_of(packages: Sequence[str]) -> str:
    """Identify these versions, in any order, in names of folders."""
    return hashlib.sha256(json.dumps(sorted(packages)).encode()).hexdigest()[:SHORT]


def versions_folder(base: Path, packages: Sequence[str]) -> Path:
    """Return the folder of the copy of ``base`` with these versions."""
    return base.with_name(f"{base.name}-versions-{digest_of(packages)}")


def install_versions(base: Path, packages: Sequence[str], *, on_message: Callable[[str], None]) -> Path:
    """Return the Python of a copy of ``base`` with these versions (``name==version``), installed if it is missing.

    Raises:
        WorkerEnvironmentError: the index lacks them, something they need is not there, or Isaac Lab does not import.
    """
    environment = versions_folder(base, packages)
    python, marker = environment / "bin" / "python", environment / COMPLETE
    with locked(environment.with_suffix(".lock"), on_message):
        if marker.exists() and python.exists():
            return python
        if environment.exists():  # an install that was interrupted
            shutil.rmtree(environment)
        listed = ", ".join(packages)
        python_version, installed = installed_in(base / "bin" / "python")
        before = unmet(python_version, installed)
        _require_wanted(packages, python_version, installed, before)
        on_message(f"Installing {listed} over a copy of the worker environment, {environment}")
        copy_environment(base, environment)
        try:
            run_uv(
                "pip", "install", "--python", str(python), "--no-deps", *packages,
                doing=f"install {listed} into a copy of the worker", next_step=NEXT_STEP,
            )  # fmt: skip
            after = [one for one in unmet(*installed_in(python)) if one not in before]
            aside = [one for one in after if one.name == "isaaclab"]
            _require_nothing([one for one in after if one not in aside], listed)
            _require_imports(python, listed)
        except WorkerEnvironmentError:
            shutil.rmtree(environment)
            raise
        for one in aside:
            on_message(f"Set aside: {one}")
        replace_json({"packages": sorted(packages), "set_aside": [str(one) for one in aside]}, marker)
    return python


def installed_in(python: Path) -> tuple[str, Installed]:
    """Return the version of an environment's Python, and everything that is installed there."""
    version, found = ask(python, DISTRIBUTIONS)
    return version, {canonicalize_name(name): (there, requires) for name, there, requires in found}


def unmet(python_version: str, installed: Installed) -> list[Unmet]:
    """Every requirement that is not fulfilled, those of extras included that others ask for."""
    python = {"python_version": ".".join(python_version.split(".")[:2]), "python_full_version": python_version}
    extras = {name: {""} for name in installed}
    left, found = [(name, "") for name in installed], []
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
                found.append(Unmet(name=name, version=version, needs=str(need), found=there))
            if other in installed:
                left += [(other, new) for new in sorted(need.extras - extras[other])]
                extras[other] |= need.extras
    return sorted(set(found), key=str)


def _readable(requires: Sequence[str]) -> Iterator[Requirement]:
    """Old packages have requirements of an earlier syntax, which are left out."""
    for text in requires:
        with contextlib.suppress(InvalidRequirement):
            yield Requirement(text)


def _require_wanted(
    packages: Sequence[str], python_version: str, installed: Installed, before: Sequence[Unmet]
) -> None:
    """Refuse versions that other packages than Isaac Lab do not take, before anything is downloaded."""
    there = {name: (version, ()) for name, _, version in (package.partition("==") for package in packages)}
    after = [one for one in unmet(python_version, {**installed, **there}) if one not in before]
    _require_nothing([one for one in after if one.name != "isaaclab"], ", ".join(packages))


def _require_nothing(left: Sequence[Unmet], listed: str) -> None:
    if left:
        raise WorkerEnvironmentError(
            f"{listed} cannot be combined with the worker of Isaac Lab 3.0.0: {'; '.join(map(str, left))}. Add a "
            "version of each that is needed in the same way (name==version), or take other versions."
        )


def _require_imports(python: Path, listed: str) -> None:
    command = [str(python), "-c", "".join(f"import {module}\n" for module in IMPORTED)]
    done = parent_death.run(command, {"CUDA_VISIBLE_DEVICES": ""})
    if done.returncode != 0:
        raise WorkerEnvironmentError(
            f"Isaac Lab 3.0.0 does not import with {listed}: {last_lines(done.stderr, 1)}. Take other versions, or "
            "leave these cases out."
        )
