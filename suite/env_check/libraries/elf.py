"""Reads the word size, machine, name and dependencies of an ELF file without loading it."""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Literal

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile

_MAGIC: Final = b"\x7fELF"
_RUNNING_PROGRAM: Final = Path("/proc/self/exe")

ElfFault = Literal["absent", "unreadable", "not_elf", "truncated"]


@dataclass(frozen=True, kw_only=True)
class Elf:
    """One ELF file. If ``fault`` is set, the fields that could not be read are None or empty."""

    path: str
    fault: ElfFault | None = None
    bits: int | None = None  # 32 or 64
    machine: str | None = None  # "EM_X86_64"
    needed: tuple[str, ...] = ()
    runpath: tuple[str, ...] = ()  # folders to search for its dependencies, with $ORIGIN replaced

    @property
    def loads_here(self) -> bool:
        """Return whether its header allows this process to load it."""
        return self.fault is None and (self.bits, self.machine) == (host().bits, host().machine)


def read_elf(path: Path) -> Elf:
    """Read ``path``. A file that is absent, unreadable, truncated or not ELF gives a fault, never an exception."""
    try:
        with path.open("rb") as stream:
            return _read(path, stream)
    except FileNotFoundError:
        return Elf(path=str(path), fault="absent")
    except OSError:
        return Elf(path=str(path), fault="unreadable")


@functools.cache
def host() -> Elf:
    """Return the running Python, whose word size and machine every library it loads must share."""
    return read_elf(_RUNNING_PROGRAM)


def _read(path: Path, stream: BinaryIO) -> Elf:
    if stream.read(len(_MAGIC)) != _MAGIC:
        return Elf(path=str(path), fault="not_elf")
    try:
        return _parse(path, ELFFile(stream), path.stat().st_size)
    except (ELFError, ValueError):
        return Elf(path=str(path), fault="truncated")


def _parse(path: Path, elf: ELFFile, size_bytes: int) -> Elf:
    segments = list(elf.iter_segments())
    if any(segment["p_offset"] + segment["p_filesz"] > size_bytes for segment in segments):
        return Elf(path=str(path), fault="truncated")
    tags: dict[str, list[str]] = {"DT_NEEDED": [], "DT_RPATH": [], "DT_RUNPATH": []}
    for segment in segments:
        if isinstance(segment, DynamicSegment):
            for tag in segment.iter_tags():
                if tag.entry.d_tag in tags:
                    name = tag.entry.d_tag.removeprefix("DT_").lower()
                    tags[tag.entry.d_tag].append(getattr(tag, name))
    return Elf(
        path=str(path),
        bits=elf.elfclass,
        machine=elf["e_machine"],
        needed=tuple(tags["DT_NEEDED"]),
        runpath=tuple(
            folder.replace("$ORIGIN", str(path.parent)).replace("${ORIGIN}", str(path.parent))
            for entry in tags["DT_RUNPATH"] or tags["DT_RPATH"]
            for folder in entry.split(":")
        ),
    )
