"""Finds damaged modules in Warp's cache of compiled kernels, and moves them away.

Warp loads modules from there without a check and compiles only missing files, so a file that a full disk cut short
fails every run that needs it. Warp writes to a folder of the process, ``…_p<pid>_t<thread>``, and renames it::

    CACHE/kernels-<pins>/warp/<version>/wp_<module>_<hash>/*.meta             JSON
                                                          /*.o, *.cubin       ELF, for CPUs and GPUs
                                                          /*.ptx              text
    CACHE/kernels-<pins>/damaged/wp_<module>_<hash>/                          moved away
                        /warm/                                                runs that compiled everything, see
                        suite.campaign.runs.warm_up
"""

import json
import re
import shutil
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.errors import WorkerEnvironmentError
from suite.files.input_file import open_input, read_input

DAMAGED: Final = "damaged"  # a folder in the cache
WARM: Final = "warm"  # another
_BEING_WRITTEN: Final = re.compile(r"_p\d+_t\d+$")
_ELF_HEADER: Final = struct.Struct("<4s28xQQ6xHHHHH")  # offsets, then size and number of segments and of sections
_ELF_SECTION: Final = struct.Struct("<4xI16xQQ24x")
_SHT_STRTAB: Final = 3
_SHT_NOBITS: Final = 8  # has a size, but takes no space in the file
_PTX_ENDINGS: Final = b"};0123456789"  # the last byte of a function, a variable, and a header alone


@dataclass(frozen=True, kw_only=True)
class DamagedModule:
    folder: Path
    problem: str  # "wp_solver_a1b2.meta is not JSON"


def modules(cache_dir: Path) -> Iterator[Path]:
    """Yield the folders of compiled modules, without those that are being written."""
    yield from (folder for folder in sorted(cache_dir.glob("warp/*/wp_*")) if not _BEING_WRITTEN.search(folder.name))


def damaged_modules(cache_dir: Path) -> Iterator[DamagedModule]:
    """Yield damaged modules: every file that Warp loads must be complete; its content is not checked."""
    for folder in modules(cache_dir):
        for path in sorted(folder.glob("*")):
            if problem := _problem(path):
                yield DamagedModule(folder=folder, problem=f"{path.name} {problem}")
                break


def set_damaged_aside(cache_dir: Path) -> tuple[DamagedModule, ...]:
    """Move every damaged module to ``DAMAGED``, so that the next run compiles it again, and remove ``WARM``.

    Raises:
        WorkerEnvironmentError: one cannot be moved.
    """
    found = tuple(damaged_modules(cache_dir))
    if found:
        shutil.rmtree(cache_dir / WARM, ignore_errors=True)
    for module in found:
        aside = cache_dir / DAMAGED / module.folder.name
        try:
            aside.parent.mkdir(exist_ok=True)
            shutil.rmtree(aside, ignore_errors=True)
            module.folder.rename(aside)
        except FileNotFoundError:  # another process or thread moved it
            continue
        except OSError as error:
            raise WorkerEnvironmentError(
                f"The kernel cache is damaged ({module.problem}), and {module.folder} cannot be moved away: "
                f"{error.strerror}. Remove that folder, or set LABSCALE_CACHE to a folder of yours."
            ) from error
    return found


def _problem(path: Path) -> str | None:
    check = _CHECKS.get(path.suffix)
    if check is None:
        return None
    try:
        return check(path)
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
