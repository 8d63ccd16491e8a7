"""Install a labscale bundle on a host without a network. Travels in the bundle as ``install.py``.

    python3 install.py --into DIR [--python PATH] [--parts FOLDER ...]

Uses the standard library only, and starts with Python 3.9 or newer; ``--python`` names the Python 3.12 to run with.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import lzma
import os
import shlex
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

EXIT_CODE = 15  # suite.errors.BundleError
FOLDERS = ("site", "assets", "labscale")

CHECK = """
import importlib.metadata, json, sys
try:
    from packaging.specifiers import SpecifierSet
except ImportError:
    SpecifierSet = None  # is then reported as missing
bundle = json.load(sys.stdin)
problems, doubts = [], []
def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
for item in bundle["distributions"]:
    found = version(item["name"])
    if found != item["version"]:
        problems.append("%s from the bundle is %s, expected %s" % (item["name"], found, item["version"]))
for item in bundle["expected_on_target"]:
    found = version(item["name"])
    if found is None:
        problems.append("%s%s is missing on this host" % (item["name"], item["specifier"]))
    elif SpecifierSet and not SpecifierSet(item["specifier"]).contains(found, prereleases=True):
        where = doubts if item["assumed"] else problems
        where.append("%s on this host is %s, declared is %s" % (item["name"], found, item["specifier"]))
print(json.dumps([problems, doubts]))
"""

LAUNCHER = """#!/bin/sh
# Runs labscale as installed from a bundle: {name} bench --matrix smoke, {name} --help
here=$(cd "$(dirname "$0")" && pwd) || exit 1
PYTHONPATH="$here/labscale:$here/site${{PYTHONPATH:+:$PYTHONPATH}}"
ISAACSIM_ASSET_ROOT="$here/assets"
export PYTHONPATH ISAACSIM_ASSET_ROOT
case "$1" in
bench | plan | env_check)
    command=$1
    shift
    exec {python} -P -m suite "$command" --worker-python {python} "$@"
    ;;
esac
exec {python} -P -m suite "$@"
"""


class InstallError(Exception):
    """The bundle cannot be installed; the message names the reason and the next step."""


class Joined(io.RawIOBase):
    """Several files read as one."""

    def __init__(self, paths: list[Path]) -> None:
        super().__init__()
        self._paths = list(paths)
        self._file: io.BufferedReader | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while True:
            if self._file is None:
                if not self._paths:
                    return 0
                self._file = self._paths.pop(0).open("rb")
            if size := self._file.readinto(buffer):
                return size
            self._file.close()
            self._file = None


def read_bundle(folders: list[Path]) -> dict[str, Any]:
    for folder in folders:
        if (folder / "bundle.json").is_file():
            bundle: dict[str, Any] = json.loads((folder / "bundle.json").read_text())
            if bundle["format"] != 1:
                raise InstallError(f"bundle.json has format {bundle['format']}, this install.py reads 1: use its own.")
            return bundle
    raise InstallError(
        f"No bundle.json in {_listed(folders)}. Carry it over with the parts, or name its folder with --parts."
    )


def find_parts(bundle: dict[str, Any], folders: list[Path]) -> list[Path]:
    """Return the parts in order; InstallError names every one that is missing or broken."""
    found, problems = [], []
    for part in bundle["parts"]:
        candidates = [folder / part["name"] for folder in folders if (folder / part["name"]).is_file()]
        whole = [path for path in candidates if _sha256(path) == part["sha256"]]
        if whole:
            found.append(whole[0])
        elif candidates:
            size = candidates[0].stat().st_size
            detail = f"{size} of {part['bytes']} bytes" if size != part["bytes"] else "its checksum differs"
            problems.append(f"{part['name']} is broken: {detail} ({candidates[0]})")
        else:
            problems.append(f"{part['name']} is missing ({part['bytes']} bytes)")
    if problems:
        count = len(bundle["parts"])
        raise InstallError(
            f"{len(problems)} of {count} parts cannot be used, looked in {_listed(folders)}:\n  "
            + "\n  ".join(problems)
            + "\nCarry these over again, or name further folders with --parts."
        )
    return found


def check_python(python: str, wanted: str) -> None:
    try:
        done = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InstallError(f"{python} does not run: {error}. Name a Python {wanted} with --python.") from error
    version = done.stdout.strip()
    if not version.startswith(f"Python {wanted}."):
        raise InstallError(f"{python} is {version}, the bundle was made for Python {wanted}. Name one with --python.")


def unpack(parts: list[Path], into: Path) -> None:
    with lzma.open(io.BufferedReader(Joined(parts), 2**20)) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            target = Path(os.path.normpath(into / member.name))
            content = tar.extractfile(member)
            if content is None or into not in target.parents:
                raise InstallError(
                    f"The bundle holds {member.name!r}, which is no file below its folder. Make it anew."
                )
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)
            target.chmod(member.mode)


def check_distributions(python: str, site: Path, bundle: dict[str, Any]) -> list[str]:
    """Raise InstallError with everything that ``python`` does not find, or finds in a version that does not fit.

    Returns what does not fit, but was accepted by a freeze that named no version.
    """
    python_path = os.pathsep.join(part for part in (str(site), os.environ.get("PYTHONPATH")) if part)
    done = subprocess.run(
        [python, "-c", CHECK],
        input=json.dumps(bundle),
        env={**os.environ, "PYTHONPATH": python_path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise InstallError(f"{python} could not check the distributions:\n{done.stderr.strip()}")
    problems, doubts = json.loads(done.stdout)
    if problems:
        raise InstallError(
            "The result would not be complete:\n  "
            + "\n  ".join(problems)
            + "\nInstall these on this host, or make the bundle again with a `pip freeze` of exactly this Python."
        )
    return list(doubts)


def install(into: Path, *, python: str, folders: list[Path]) -> Path:
    """Install into the folder ``into`` and return the launcher. Nothing is left there when a step fails."""
    for name in FOLDERS:
        if (into / name).exists():
            raise InstallError(f"{into} already holds {name}. Remove that installation, or choose another folder.")
    bundle = read_bundle(folders)
    check_python(python, bundle["python"])
    parts = find_parts(bundle, folders)
    into.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(into).free
    if free < bundle["unpacked_bytes"]:
        raise InstallError(f"{into} has {free / 1e6:.0f} MB free, needed are {bundle['unpacked_bytes'] / 1e6:.0f} MB.")
    unpacking = into / ".unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)
    try:
        unpack(parts, unpacking)
        for doubt in check_distributions(python, unpacking / "site", bundle):
            print(f"install.py: warning: {doubt}; the freeze named no version, so it is used as it is", file=sys.stderr)
        for name in FOLDERS:
            (unpacking / name).rename(into / name)
    finally:
        shutil.rmtree(unpacking, ignore_errors=True)
    (into / "bundle.json").write_text(json.dumps(bundle, indent=1) + "\n")
    launcher = into / "labscale.sh"
    launcher.write_text(LAUNCHER.format(python=shlex.quote(python), name=launcher.name))
    launcher.chmod(0o755)
    return launcher


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(2**20), b""):
            digest.update(block)
    return digest.hexdigest()


def _listed(folders: list[Path]) -> str:
    return ", ".join(str(folder) for folder in folders)


def main() -> int:
    parser = argparse.ArgumentParser(description="Install a labscale bundle on a host without a network.")
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="folder to install into")
    parser.add_argument(
        "--python", default=sys.executable, metavar="PATH", help="Python 3.12 to run with (default: this)"
    )
    parser.add_argument(
        "--parts", type=Path, nargs="+", default=[], metavar="FOLDER", help="further folders with parts"
    )
    arguments = parser.parse_args()
    folders = [Path(__file__).resolve().parent, *arguments.parts]
    try:
        python = shutil.which(arguments.python) or arguments.python
        launcher = install(arguments.into.absolute(), python=python, folders=folders)
    except InstallError as error:
        print(f"install.py: {error}", file=sys.stderr)
        return EXIT_CODE
    print(f"Installed. Run: {launcher} bench --help")
    return 0


if __name__ == "__main__":
    sys.exit(main())
