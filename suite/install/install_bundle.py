"""Installs a labscale bundle on a host without a network. In the bundle it is ``install.py``.

    python3 install.py --into DIR [--python PATH] [--parts FOLDER ...]

``install`` is all of it, in order: refuse a folder with an installation, read ``bundle.json``, check Python, the parts
and the free space, unpack, write ``labscale.sh`` and the Python of each set of other versions, check which packages
Python finds, and move it all to its place.

It uses the standard library only and runs with Python 3.9 or newer; ``--python`` names the Python 3.12 for labscale.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

EXIT_CODE = 15  # suite.errors.BundleError
FOLDERS = ("site", "versions", "assets", "labscale")
LAUNCHER_NAME = "labscale.sh"
LISTS: dict[str, dict[str, type]] = {  # lists in bundle.json, and the values that each item needs
    "parts": {"name": str, "bytes": int, "sha256": str},
    "distributions": {"name": str, "version": str},
    "expected_on_target": {"name": str, "specifier": str, "assumed": bool},
    "versions": {"digest": str, "packages": list},
}

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
# Runs labscale as installed from a bundle: {name} bench, {name} --help
here=$(dirname "$(readlink -f "$0")") || exit 1
PYTHONPATH="$here/labscale:$here/site${{PYTHONPATH:+:$PYTHONPATH}}"
ISAACSIM_ASSET_ROOT="$here/assets"
LABSCALE_VERSIONS="$here/versions"
LABSCALE_LAUNCHER=$0
export PYTHONPATH ISAACSIM_ASSET_ROOT LABSCALE_VERSIONS LABSCALE_LAUNCHER
case "$1" in
bench | plan | env_check)
    command=$1
    shift
    exec {python} -P -m suite "$command" --worker-python {python} "$@"
    ;;
esac
exec {python} -P -m suite "$@"
"""

WITH_VERSIONS = """#!/bin/sh
# Python with the other versions of packages in this folder, for configurations that ask for them
here=$(dirname "$(dirname "$(readlink -f "$0")")") || exit 1
PYTHONPATH="$here${{PYTHONPATH:+:$PYTHONPATH}}"
export PYTHONPATH
exec {python} "$@"
"""


class InstallError(Exception):
    """The bundle cannot be installed; the message has the reason and the next step."""


class Joined(io.RawIOBase):
    """Several files that are read as one."""

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

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        super().close()


def read_bundle(folders: list[Path]) -> dict[str, Any]:
    for folder in folders:
        if (folder / "bundle.json").is_file():
            return _read_index(folder / "bundle.json")
    raise InstallError(
        f"No bundle.json in {_listed(folders)}. Copy it here with the parts, or name its folder with --parts."
    )


def _read_index(path: Path) -> dict[str, Any]:
    try:
        bundle: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = bundle["format"]
        bundle.setdefault("versions", [])  # older bundles have none
        is_whole = version != 1 or (
            isinstance(bundle["python"], str)
            and isinstance(bundle["unpacked_bytes"], int)
            and all(
                isinstance(item[key], kind)
                for name, kinds in LISTS.items()
                for item in bundle[name]
                for key, kind in kinds.items()
            )
        )
    except OSError as error:
        raise InstallError(f"{path} cannot be read: {error.strerror}. Copy it here again.") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        raise InstallError(f"{path} is damaged: it is not what labscale wrote. Copy it here again.")
    if version != 1:
        raise InstallError(f"bundle.json has format {version}, this install.py reads 1: use the bundle's own.")
    return bundle


def check_python(python: str, wanted: str) -> None:
    try:
        done = subprocess.run([python, "-V"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InstallError(f"{python} does not run: {error}. Name a Python {wanted} with --python.") from error
    version = done.stdout.strip()
    if not version.startswith(f"Python {wanted}."):
        raise InstallError(f"{python} is {version}, the bundle was made for Python {wanted}. Name one with --python.")


def find_parts(bundle: dict[str, Any], folders: list[Path]) -> list[Path]:
    """Return the parts in order. Raises InstallError that names every part that is missing or broken."""
    found, problems = [], []
    for part in bundle["parts"]:
        named = [folder / part["name"] for folder in folders]
        candidates = [path for path in named if os.path.isfile(path)]  # noqa: PTH113 - False for an invalid name too
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
            + "\nCopy these here again, or name further folders with --parts."
        )
    return found


def unpack(parts: list[Path], into: Path) -> None:
    """Unpack regular files only, and only below ``into``.

    Raises:
        InstallError: the archive contains something else, or is damaged.
    """
    try:
        with (
            Joined(parts) as joined,
            lzma.open(io.BufferedReader(joined, 2**20)) as stream,
            tarfile.open(fileobj=stream, mode="r|") as tar,
        ):
            for member in tar:
                name = PurePosixPath(member.name)
                content = tar.extractfile(member) if member.isfile() else None
                if content is None or name.is_absolute() or ".." in name.parts:
                    raise InstallError(
                        f"The bundle contains {member.name!r}, which is no file below its folder. Make it again."
                    )
                target = into / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file)
                target.chmod(member.mode)
    except (lzma.LZMAError, tarfile.TarError, EOFError, ValueError) as error:  # ValueError: a zero byte in a name
        raise InstallError(
            f"The parts do not make an archive ({error}): bundle.json belongs to other parts. Make the bundle again."
        ) from error


def check_distributions(python: str, site: Path, bundle: dict[str, Any]) -> list[str]:
    """Check that ``python`` finds every distribution in a fitting version; the InstallError names all that it does not.

    Return those that do not fit, but were accepted: ``--target-has``, with which the bundle was made, named no version.
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
            + "\nInstall these on this host, or make the bundle again with what\n"
            f"  {python} -m pip freeze --all\nprints here, as --target-has."
        )
    return list(doubts)


def check_versions(folder: Path, bundle: dict[str, Any]) -> None:
    """Check that the Python of each set of versions finds them first; raises InstallError as check_distributions."""
    for one in bundle["versions"]:
        python = folder / "versions" / one["digest"] / "bin" / "python"
        if not python.is_file():
            raise InstallError(f"The parts do not have the versions {one['packages']}. Make the bundle again.")
        pairs = [str(package).partition("==")[::2] for package in one["packages"]]
        wanted = [{"name": name, "specifier": f"=={version}", "assumed": False} for name, version in pairs]
        check_distributions(str(python), folder / "site", {"distributions": [], "expected_on_target": wanted})


def install(into: Path, *, python: str, folders: list[Path]) -> Path:
    """Install into the folder ``into`` and return the launcher. Nothing stays there if a step fails."""
    with _writing_to(into):
        for name in FOLDERS:
            if (into / name).exists():
                raise InstallError(f"{into} already has {name}. Remove that installation, or choose another folder.")
    bundle = read_bundle(folders)
    check_python(python, bundle["python"])
    parts = find_parts(bundle, folders)
    unpacking = into / ".unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)  # of an installation that was killed
    with _writing_to(into):
        into.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(into).free
    if free < bundle["unpacked_bytes"]:
        needed = f"needed are {bundle['unpacked_bytes'] / 1e6:.0f} MB"
        raise InstallError(f"{into} has {free / 1e6:.0f} MB free, {needed}. Choose another folder with --into.")
    try:
        with _writing_to(into):
            unpack(parts, unpacking)
            _write_launcher(unpacking, python=python, bundle=bundle)
            _write_pythons(unpacking / "versions", python=python)
        for doubt in check_distributions(python, unpacking / "site", bundle):
            print(f"install.py: warning: {doubt}; --target-has named no version, so it is used", file=sys.stderr)
        check_versions(unpacking, bundle)
        with _writing_to(into):
            _move(unpacking, into)
    finally:
        shutil.rmtree(unpacking, ignore_errors=True)
    return into / LAUNCHER_NAME


def _move(unpacked: Path, into: Path) -> None:
    """Move all to its place, the launcher last: it needs the others. What was moved is moved back if this fails."""
    names = ("bundle.json", *FOLDERS, LAUNCHER_NAME)
    try:
        for name in names:
            (unpacked / name).replace(into / name)
    except BaseException:
        for name in names:
            if (into / name).exists() and not (unpacked / name).exists():
                (into / name).replace(unpacked / name)
        raise


def _write_launcher(folder: Path, *, python: str, bundle: dict[str, Any]) -> None:
    """Write the launcher, and ``bundle.json`` as it was read."""
    (folder / "bundle.json").write_text(json.dumps(bundle, indent=1) + "\n")
    launcher = folder / LAUNCHER_NAME
    launcher.write_text(LAUNCHER.format(python=shlex.quote(python), name=launcher.name))
    launcher.chmod(0o755)


def _write_pythons(versions: Path, *, python: str) -> None:
    """Write the Python of each set of versions. The folder is there without sets too."""
    versions.mkdir(exist_ok=True)
    for folder in versions.iterdir():
        wrapper = folder / "bin" / "python"
        wrapper.parent.mkdir(exist_ok=True)
        wrapper.write_text(WITH_VERSIONS.format(python=shlex.quote(python)))
        wrapper.chmod(0o755)


@contextmanager
def _writing_to(into: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InstallError(
            f"Cannot install into {into}: {error}. Nothing of it is left. Check space and permissions, or choose "
            "another folder with --into, then run the same command again."
        ) from error


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            for block in iter(lambda: file.read(2**20), b""):
                digest.update(block)
    except OSError as error:
        raise InstallError(f"{path} cannot be read: {error.strerror}. Give access, or copy it here again.") from error
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
        found = shutil.which(arguments.python)
        python = str(Path(found).absolute()) if found else arguments.python
        into = Path(os.path.realpath(arguments.into))
        launcher = install(into, python=python, folders=folders)
    except InstallError as error:
        print(f"install.py: {error}", file=sys.stderr)
        return EXIT_CODE
    except KeyboardInterrupt:
        print("install.py: interrupted. Nothing of it is left; run the same command again.", file=sys.stderr)
        return 130
    print(f"Installed. Run: {launcher} bench --help")
    return 0


if __name__ == "__main__":
    sys.exit(main())
