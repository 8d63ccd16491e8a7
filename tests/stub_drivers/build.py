"""Compile the stub drivers of this folder, and spoil libraries for real."""

import json
import struct
import subprocess
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).parent
E_MACHINE_OFFSET, EM_RISCV = 18, 243  # elf.h


def build(output: Path, source: str, *options: str) -> Path:
    """Compile ``source`` of this folder into the library ``output``; ``options`` go to gcc."""
    command = ["gcc", "-shared", "-fPIC", "-O1", "-o", str(output), str(SOURCES / source), *options]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return output


def build_with_missing_dependency(folder: Path, name: str = "libneedy.so") -> Path:
    """A library that needs libdep_gone.so, which is deleted after it was linked."""
    dependency = build(folder / "libdep_gone.so", "library.c", "-Wl,-soname,libdep_gone.so")
    library = build(folder / name, "library.c", "-DCALLS_DEPENDENCY", str(dependency))
    dependency.unlink()
    return library


def build_32_bit(output: Path) -> Path:
    """Build a 32-bit library without libc, so that no 32-bit libc need be installed."""
    source = output.with_suffix(".c")
    source.write_text("int vk_icdGetInstanceProcAddr(void) { return 0; }")
    subprocess.run(["gcc", "-m32", "-shared", "-nostdlib", "-o", str(output), str(source)], check=True)
    return output


def build_for_another_machine(output: Path) -> Path:
    content = bytearray(build(output, "icd.c").read_bytes())
    struct.pack_into("<H", content, E_MACHINE_OFFSET, EM_RISCV)
    output.write_bytes(content)
    return output


def truncate(library: Path) -> Path:
    library.write_bytes(library.read_bytes()[:1000])
    return library


def write_manifest(path: Path, library: str | Path, **icd: Any) -> Path:
    """A sound manifest of Vulkan and of EGL alike, with ``icd`` changed or added."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"file_format_version": "1.0.0", "ICD": {"library_path": str(library), "api_version": "1.3.0", **icd}}
    path.write_text(json.dumps(document))
    return path
