"""Finds files that are not what was installed or compiled: of packages, and in Warp's cache of kernels.

Each installed package has a RECORD with sizes and hashes. Every file's size is compared. Python files of the packages
that decide a run's speed are hashed too; this takes a second.

Warp loads compiled modules without a check and compiles only missing files, so a file that a full disk cut short fails
every run that needs it. Warp writes to a folder of the process, ``…_p<pid>_t<thread>``, and renames it::

    CACHE/kernels-<pins>/warp/<version>/wp_<module>_<hash>/*.meta             JSON
                                                          /*.o, *.cubin       ELF, for CPUs and GPUs
                                                          /*.ptx              text
    CACHE/kernels-<pins>/damaged/wp_<module>_<hash>/                          moved away
                        /warm/                                                runs that compiled everything, see
                        suite.campaign.runs.warm_up
"""

import base64
import contextlib
import csv
import hashlib
import json
import os
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Final

from packaging.utils import canonicalize_name

from suite.errors import WorkerEnvironmentError
from suite.files.input_file import open_input, read_input
from suite.install.bundle_contents import LEFT_OUT_FILES, NPM, is_bundled

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
        not_packed = ("..", NPM, *LEFT_OUT_FILES) if is_bundled() else ()
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
            actual = hashlib.sha256(Path(path).read_bytes()).digest()
            is_same = base64.urlsafe_b64encode(actual).rstrip(b"=").decode() == digest
        return None if is_same else f"{name} was changed"


def changes(folders: Sequence[Path]) -> tuple[str, ...]:
    """Name each package in ``folders`` with a file that is missing or differs, and what Python runs beside them."""
    changed, recorded = [], set[Path]()
    for package in _packages(folders):
        faults = []
        for name, digest, size in package.files():
            if "/" not in name:
                recorded.add(package.home / name)
            if fault := package.fault_of(name, digest, size):
                faults.append(fault)
        if faults:
            more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
            changed.append(f"{package.name}: {faults[0]}{more}")
    others = {path for folder in folders for pattern in _RUN_AT_START for path in folder.glob(pattern)} - recorded
    changed += [f"{path.name} belongs to no package" for path in sorted(others) if path.name not in _OF_VENV]
    return tuple(changed)


def elsewhere(folders: Sequence[Path], before: Sequence[Path]) -> tuple[str, ...]:
    """Name each package that decides the speed and is imported from another folder than it is installed in.

    Python looks into ``before``, then into ``folders``, those with packages; some may be in both.
    """
    path = [str(folder) for folder in dict.fromkeys((*before, *folders))]
    places: dict[str, str] = {}
    for package in _packages(folders):
        for module in sorted(package.modules()) if package.name in HASHED else ():
            spec = PathFinder.find_spec(module, path)
            if spec and spec.origin and not Path(spec.origin).is_relative_to(package.home):
                places.setdefault(package.name, spec.origin.removesuffix("/__init__.py"))
    return tuple(f"{name} is imported from {place}" for name, place in places.items())


def stamps(folders: Sequence[Path]) -> Stamps:
    """Size and time of change of every file of the packages that decide the speed."""
    sizes = {}
    for package in _packages(folders):
        for name, _, _ in package.files() if package.name in HASHED else ():
            path = f"{package.home}/{name}"
            with contextlib.suppress(OSError):
                facts = os.stat(path)  # noqa: PTH116
                sizes[path] = (facts.st_size, facts.st_mtime_ns)
    return sizes


def _packages(folders: Sequence[Path]) -> Iterator[_Package]:
    """Yield each package that is imported and has a RECORD."""
    names = set[str]()
    for folder in folders:
        for record in sorted(folder.glob("*.dist-info/RECORD")):
            name = str(canonicalize_name(record.parent.name.partition("-")[0]))
            if name not in names:
                names.add(name)
                yield _Package(name=name, home=folder, record=record)


# ---- compiled kernels ----


DAMAGED: Final = "damaged"  # a folder in the cache
WARM: Final = "warm"  # another
_BEING_WRITTEN: Final = re.compile(r"_p\d+_t\d+$")
_ELF_HEADER: Final = struct.Struct("<4s28xQQ6xHHHHH")  # offsets, then size and number of segments and of sections
_ELF_SECTION: Final = struct.Struct("<4xI16xQQ24x")
_SHT_STRTAB: Final = 3
_SHT_NOBITS: Final = 8  # has a size, but takes no space in the file
_PTX_ENDINGS: Final = b"};0123456789"  # the last byte of a function, a variable, and a header alone


def modules(cache_dir: Path) -> Iterator[Path]:
    """Yield the folders of compiled modules, without those that are being written."""
    yield from (folder for folder in sorted(cache_dir.glob("warp/*/wp_*")) if not _BEING_WRITTEN.search(folder.name))


def damaged_modules(cache_dir: Path) -> dict[Path, str]:
    """Return the folder of each damaged module, and what is wrong, such as "wp_solver_a1b2.meta is not JSON".

    Every file that Warp loads must be complete; its content is not checked.
    """
    damaged = {}
    for folder in modules(cache_dir):
        problems = (f"{path.name} {problem}" for path in sorted(folder.glob("*")) if (problem := _problem(path)))
        if first := next(problems, None):
            damaged[folder] = first
    return damaged


def set_damaged_aside(cache_dir: Path) -> dict[Path, str]:
    """Move every damaged module to ``DAMAGED``, so that the next run compiles it again, and remove ``WARM``.

    Raises:
        WorkerEnvironmentError: one cannot be moved.
    """
    damaged = damaged_modules(cache_dir)
    if damaged:
        shutil.rmtree(cache_dir / WARM, ignore_errors=True)
    for folder, problem in damaged.items():
        aside = cache_dir / DAMAGED / folder.name
        try:
            aside.parent.mkdir(exist_ok=True)
            shutil.rmtree(aside, ignore_errors=True)
            folder.rename(aside)
        except FileNotFoundError:  # another process or thread moved it
            continue
        except OSError as error:
            raise WorkerEnvironmentError(
                f"The kernel cache is damaged ({problem}), and {folder} cannot be moved away: "
                f"{error.strerror}. Remove that folder, or set LABSCALE_CACHE to a folder of yours."
            ) from error
    return damaged


def _problem(path: Path) -> str | None:
    try:
        return _CHECKS[path.suffix](path) if path.suffix in _CHECKS else None
    except FileNotFoundError:  # moved away by another process or thread
        return None
    except OSError as error:
        return f"cannot be read: {error.strerror}"


def _meta_problem(path: Path) -> str | None:
    try:
        is_whole = isinstance(json.loads(read_input(path)), dict)
    except (ValueError, RecursionError):
        is_whole = False
    return None if is_whole else "is not JSON"


def _elf_problem(path: Path) -> str | None:
    size = path.stat().st_size
    with open_input(path) as file:
        try:
            magic, segments_at, sections_at, segment, num_segments, section, num_sections, names = _ELF_HEADER.unpack(
                file.read(_ELF_HEADER.size)
            )
            if magic != b"\x7fELF":
                return "is not an object file"
            file.seek(sections_at)
            table = file.read(num_sections * section)
            sections = [_ELF_SECTION.unpack_from(table, number * section) for number in range(num_sections)]
        except struct.error:
            return "is cut short"
    ends = [
        segments_at + num_segments * segment,
        *(at + length for kind, at, length in sections if kind != _SHT_NOBITS),
    ]
    has_names = names >= num_sections or sections[names][0] == _SHT_STRTAB  # False for a table of zeros
    return None if max(ends) <= size and has_names else "is cut short"


def _ptx_problem(path: Path) -> str | None:
    text = read_input(path).rstrip(b"\0\n\t ")  # Warp keeps the compiler's final zero
    is_whole = b".address_size" in text and text.count(b"{") == text.count(b"}") and text[-1] in _PTX_ENDINGS
    return None if is_whole else "is cut short"


_CHECKS: Final[Mapping[str, Callable[[Path], str | None]]] = {
    ".meta": _meta_problem,
    ".o": _elf_problem,
    ".cubin": _elf_problem,
    ".ptx": _ptx_problem,
}
