"""Compares the files of installed packages with what was installed: each package has a RECORD with sizes and hashes.

Every file's size is compared. Python files of the packages that decide a run's speed are hashed too; this takes a
second.
"""

import base64
import csv
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from suite.install.bundle_contents import LEFT_OUT_FILES, NPM
from suite.install.bundled_versions import is_bundled

HASHED: Final = frozenset(
    {
        "isaaclab", "newton", "warp-lang", "mujoco", "mujoco-warp", "torch", "gymnasium", "rl-games", "rsl-rl-lib",
        "skrl", "stable-baselines3", "torchrl", "tensordict", "jax", "flax", "lerobot", "ovphysx",
    }
)  # fmt: skip
_RUN_AT_START: Final = ("*.pth", "sitecustomize.py", "usercustomize.py")
_OF_VENV: Final = ("_virtualenv.pth", "distutils-precedence.pth")  # uv writes the first, setuptools the other

type Stamps = Mapping[str, tuple[int, int]]  # path -> size and time of change [ns]


@dataclass(frozen=True, kw_only=True)
class _Package:
    name: str
    home: Path  # the folder with packages that it is in
    record: Path

    def files(self) -> Iterator[tuple[str, str, int]]:
        """Yield name, hash and size of each file that has a hash: RECORD itself and what Python compiled have none.

        A bundle packs no scripts, and leaves files out that no run needs.
        """
        not_packed = ("..", NPM, *(rule.prefix for rule in LEFT_OUT_FILES)) if is_bundled() else ()
        with self.record.open(encoding="utf-8", newline="") as lines:
            for row in csv.reader(lines):
                has_hash = len(row) == 3 and row[1].startswith("sha256=") and row[2].isdecimal()  # noqa: PLR2004
                if has_hash and not row[0].startswith(not_packed):
                    yield row[0], row[1].removeprefix("sha256="), int(row[2])

    def modules(self) -> set[str]:
        parts = {name.partition("/")[0] for name, _, _ in self.files() if name.endswith(".py")}
        return {part.removesuffix(".py") for part in parts if part != ".." and not part.endswith(".dist-info")}

    def fault_of(self, name: str, digest: str, size: int) -> str | None:
        path = f"{self.home}/{name}"  # tens of thousands of files: a Path of each would take seconds
        try:
            is_same = os.stat(path).st_size == size  # noqa: PTH116
        except OSError:
            return f"{name} is missing"
        if is_same and self.name in HASHED and name.endswith(".py"):
            found = hashlib.sha256(Path(path).read_bytes()).digest()
            is_same = base64.urlsafe_b64encode(found).rstrip(b"=").decode() == digest
        return None if is_same else f"{name} was changed"


def changes(folders: Sequence[Path]) -> tuple[str, ...]:
    """Name each package in ``folders`` with a file that is missing or differs, and what Python runs beside them."""
    found, recorded = [], set[Path]()
    for package in _packages(folders):
        faults = []
        for name, digest, size in package.files():
            if "/" not in name:
                recorded.add(package.home / name)
            if fault := package.fault_of(name, digest, size):
                faults.append(fault)
        if faults:
            more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
            found.append(f"{package.name}: {faults[0]}{more}")
    others = {path for folder in folders for pattern in _RUN_AT_START for path in folder.glob(pattern)} - recorded
    found += [f"{path.name} belongs to no package" for path in sorted(others) if path.name not in _OF_VENV]
    return tuple(found)


def elsewhere(folders: Sequence[Path], before: Sequence[Path]) -> tuple[str, ...]:
    """Name each package that decides the speed and is imported from another folder than it is installed in.

    Python looks into ``before``, then into ``folders``, those with packages; some may be in both.
    """
    order = list(dict.fromkeys((*before, *folders)))
    found = []
    for package in _packages(folders):
        earlier = order[: order.index(package.home)]
        if package.name in HASHED and (where := _first_with(earlier, package.modules())):
            found.append(f"{package.name} is imported from {where}")
    return tuple(found)


def stamps(folders: Sequence[Path]) -> Stamps:
    """Size and time of change of every file of the packages that decide the speed."""
    found = {}
    for package in _packages(folders):
        for name, _, _ in package.files() if package.name in HASHED else ():
            path = f"{package.home}/{name}"
            try:
                seen = os.stat(path)  # noqa: PTH116
            except OSError:
                continue
            found[path] = (seen.st_size, seen.st_mtime_ns)
    return found


def _packages(folders: Sequence[Path]) -> Iterator[_Package]:
    """Yield each package that is imported and has a RECORD."""
    seen = set[str]()
    for folder in folders:
        for record in sorted(folder.glob("*.dist-info/RECORD")):
            name = str(canonicalize_name(record.parent.name.partition("-")[0]))
            if name not in seen:
                seen.add(name)
                yield _Package(name=name, home=folder, record=record)


def _first_with(folders: Iterable[Path], modules: Iterable[str]) -> Path | None:
    for folder in folders:
        for module in sorted(modules):
            if os.path.isfile(folder / f"{module}.py") or next((folder / module).glob("*.py"), None):  # noqa: PTH113
                return folder / module
    return None
