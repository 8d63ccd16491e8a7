"""Finds the file that the dynamic loader would load for a library (ld.so(8)), without loading it."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.env_check.libraries.elf import Elf, read_elf

_CACHE_LINE: Final = re.compile(r"^\s+(\S+) \(.*\) => (\S+)$")
_CACHE_TIMEOUT_S: Final = 10.0


@dataclass(frozen=True, kw_only=True)
class SearchPath:
    library_path: tuple[str, ...]  # LD_LIBRARY_PATH
    cache: Mapping[str, tuple[str, ...]]  # name -> files, as ldconfig stored them
    default_folders: tuple[str, ...]

    def candidates(self, name: str, runpath: tuple[str, ...] = ()) -> Iterator[Path]:
        """Yield every path that ``name`` could mean, in the loader's order. A name with a slash is a path itself."""
        if "/" in name:
            yield Path(name)
            return
        yield from (Path(folder or ".") / name for folder in (*self.library_path, *runpath))
        yield from map(Path, self.cache.get(name, ()))
        yield from (Path(folder) / name for folder in self.default_folders)

    def find(self, name: str, runpath: tuple[str, ...] = ()) -> Elf | None:
        """Return the file that the loader would load; else one for another machine, which it skips; else None."""
        seen = [elf for path in self.candidates(name, runpath) if (elf := read_elf(path)).fault != "absent"]
        return next((elf for elf in seen if elf.fault or elf.loads_here), seen[0] if seen else None)

    def find_missing(self, elf: Elf) -> tuple[str, str] | None:
        """Return the first missing dependency of ``elf`` or of its dependencies, and the file that needs it."""
        todo, done = [elf], {Path(elf.path).name}
        while todo:
            user = todo.pop(0)
            for name in user.needed:
                if name in done:
                    continue
                done.add(name)
                found = self.find(name, user.runpath)
                if found is None or not found.loads_here:
                    return name, user.path
                todo.append(found)
        return None


def read(environ: Mapping[str, str]) -> SearchPath:
    multiarch = f"{platform.machine()}-linux-gnu"
    return SearchPath(
        library_path=tuple(re.split("[:;]", text)) if (text := environ.get("LD_LIBRARY_PATH")) else (),
        cache=_read_cache(environ),
        default_folders=(f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib"),
    )


def _read_cache(environ: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the output of ``ldconfig -p``. Without ldconfig it is empty, and only the default folders remain."""
    ldconfig = shutil.which("ldconfig", path=os.pathsep.join((environ.get("PATH", ""), "/sbin", "/usr/sbin")))
    if ldconfig is None:
        return {}
    done = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False, timeout=_CACHE_TIMEOUT_S)
    files: dict[str, tuple[str, ...]] = {}
    for line in done.stdout.splitlines():
        if match := _CACHE_LINE.match(line):
            name, path = match.groups()
            files[name] = (*files.get(name, ()), path)
    return files
