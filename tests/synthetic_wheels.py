"""Tiny wheels, and an index and environments made of them, so that uv runs for real without a network."""

import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import uv

from suite.install.pins import sha256


def write_wheel(
    folder: Path, name: str, version: str, *, requires: Sequence[str] = (), files: Mapping[str, str] | None = None
) -> Path:
    """Write a pure Python wheel that holds one module, named like it, and ``files``."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    metadata = [
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}",
        *(f"Requires-Dist: {it}" for it in requires),
    ]
    contents = {
        f"{module}/__init__.py": f'VERSION = "{version}"\n',
        **(files or {}),
        f"{info}/METADATA": "\n".join(metadata) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    wheel = folder / f"{module}-{version}-py3-none-any.whl"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**contents, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return wheel


def pin(wheel: Path) -> str:
    """Lines of a hashed requirement file."""
    name, version, *_ = wheel.name.split("-")
    return f"{name.replace('_', '-')}=={version} \\\n    --hash=sha256:{sha256(wheel)}\n"


def write_index(folder: Path, wheels: Sequence[Path]) -> str:
    """Write a package index of ``wheels`` and return its address."""
    links: dict[str, list[str]] = {}
    for wheel in wheels:
        link = f'<a href="{wheel.as_uri()}#sha256={sha256(wheel)}">{wheel.name}</a>'
        links.setdefault(wheel.name.split("-")[0].replace("_", "-"), []).append(link)
    for name, lines in links.items():
        page = folder / name / "index.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text("<!DOCTYPE html><html><body>" + "<br>".join(lines) + "</body></html>")
    return folder.as_uri()


def make_environment(folder: Path, wheels: Sequence[Path]) -> Path:
    """Create a virtual environment with exactly ``wheels`` and return its Python."""
    python = folder / "bin" / "python"
    commands = [["venv", "--quiet", "--python", sys.executable, str(folder)]]
    if wheels:
        install = ["pip", "install", "--quiet", "--offline", "--no-deps", "--python", str(python)]
        commands.append([*install, *map(str, wheels)])
    for command in commands:
        subprocess.run([uv.find_uv_bin(), *command], check=True, capture_output=True)
    return python
