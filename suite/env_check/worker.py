"""Checks the worker: its packages against the pins, its files against what was installed, its assets and kernels.

It reads files only, so a broken Python is never started.
"""

import importlib.metadata
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Literal

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from pydantic import BaseModel, ValidationError

from suite.env_check.check import Fault, Judgement, Subject
from suite.env_check.container import is_folder, is_there
from suite.files.input_file import read_input
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.install import damage
from suite.install.bundle_contents import is_bundled
from suite.install.pins import PYTHON_VERSION, sha256
from suite.install.worker_packages import COMPLETE

SHOWN: Final = 5  # packages in one line; the evidence lists all
_PINNED_LINE: Final = re.compile(r"^[a-z0-9]")
_VERSION: Final = re.compile(r"(3\.\d+)")
ISAAC_SIM_VERSION: Final = Path("/isaac-sim/VERSION")  # in NVIDIA's image: "6.2.0-rc.1+…"; wheels state theirs
_RELEASE: Final = re.compile(r"\d+(\.\d+)*")


@dataclass(frozen=True, kw_only=True)
class PackageDifference:
    name: str
    wanted: str | None  # None: any version
    found: str | None  # None: not installed


@dataclass(frozen=True, kw_only=True)
class WorkerFacts:
    python: str
    exists: bool
    is_own: bool  # the user's, from --worker-python
    is_complete: bool  # the suite's installation finished; always True for the user's own Python
    python_version: str | None  # "3.12"
    num_wanted: int
    num_installed: int
    differences: tuple[PackageDifference, ...]
    unusable: tuple[str, ...]  # packages that the stack always needs: missing, or an unusable version
    changed: tuple[str, ...] = ()  # packages with files other than those that were installed
    elsewhere: tuple[str, ...] = ()  # packages that are imported from another folder than they are installed in
    isaac_sim: str | None = None  # its release, "6.2.0"; None if unknown


def read_worker(
    python: Path,
    *,
    is_own: bool,
    pins_path: Path | None,
    needed: Mapping[str, str | None],
    environ: Mapping[str, str],
    also: Sequence[Path] = (),
    isaac_sim_version: Path = ISAAC_SIM_VERSION,
) -> WorkerFacts:
    """Compare the packages of ``python`` with a requirement file (``pins_path`` None: with ``needed`` only).

    ``needed`` is the stack's entry in ``suite.install.worker.NEEDED``: name -> version, or None for any version.
    ``also`` are the Pythons of other workers, whose files are compared too.
    """
    exists, installed = is_there(python), dict[str, str]()
    folders = list(map(str, site_folders(python, environ))) if exists else []
    for distribution in importlib.metadata.distributions(path=folders):
        metadata = distribution.metadata  # read once: every access parses the file again
        if "Name" in metadata:  # leftovers of a failed removal by pip have none
            installed.setdefault(canonicalize_name(metadata["Name"]), metadata["Version"])
    pinned = read_pins(pins_path) if pins_path else {}
    workers = [list(site_folders(worker, environ)) for worker in (python, *also) if is_there(worker)]
    before = [ROOT, *_path_of(environ)]  # as suite.files.paths.import_path sets PYTHONPATH
    canonical = {str(canonicalize_name(name)): version for name, version in needed.items()}
    wanted = {**canonical, **pinned}
    return WorkerFacts(
        python=str(python),
        exists=exists,
        is_own=is_own,
        is_complete=is_own or is_there(python.parent.parent / COMPLETE),
        python_version=python_version(python) if exists else None,
        num_wanted=len(wanted),
        num_installed=len(installed),
        differences=_differences(wanted, installed),
        unusable=tuple(difference.name for difference in _differences(canonical, installed)),
        changed=tuple(dict.fromkeys(name for paths in workers for name in damage.changes(paths))),
        elsewhere=tuple(dict.fromkeys(name for paths in workers for name in damage.elsewhere(paths, before))),
        isaac_sim=_isaac_sim(installed, isaac_sim_version),
    )


def _isaac_sim(installed: Mapping[str, str], version: Path) -> str | None:
    text = installed.get("isaacsim") or (version.read_text(encoding="utf-8") if is_there(version) else "")
    release = _RELEASE.match(text)
    return release[0] if release else None


def _differences(wanted: Mapping[str, str | None], installed: Mapping[str, str]) -> tuple[PackageDifference, ...]:
    return tuple(
        PackageDifference(name=name, wanted=version, found=installed.get(name))
        for name, version in sorted(wanted.items())
        if name not in installed or (version is not None and Version(version) != Version(installed[name]))
    )


def read_pins(path: Path) -> dict[str, str]:
    """Return name -> version of a requirement file, for the lines that apply to this machine."""
    pinned: dict[str, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not _PINNED_LINE.match(line):
            continue
        requirement = Requirement(line.rstrip("\\ "))
        if requirement.marker is None or requirement.marker.evaluate():
            pinned[canonicalize_name(requirement.name)] = next(iter(requirement.specifier)).version
    return pinned


def site_folders(python: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that ``python`` imports from: PYTHONPATH, its environment's, and its base's if enabled."""
    yield from _path_of(environ)
    version = python_version(python)
    yield from _site_folders_of(python.parent.parent, version)  # not resolved: the link leads to the base's Python
    settings = _environment_settings(python)
    if settings is None and python.is_symlink():
        yield from _site_folders_of(python.resolve().parent.parent, version)
    elif settings and settings.get("include-system-site-packages", "").lower() == "true" and "home" in settings:
        yield from _site_folders_of(Path(settings["home"]).parent, version)


def _path_of(environ: Mapping[str, str]) -> list[Path]:
    return [Path(part) for part in environ.get("PYTHONPATH", "").split(os.pathsep) if part]


def python_version(python: Path) -> str | None:
    """Return ``"3.12"``, from the environment's settings or the program's name; None if neither gives a version."""
    settings = _environment_settings(python) or {}
    texts = (settings.get("version_info", ""), settings.get("version", ""), python.resolve().name)
    return next((match[1] for text in texts if (match := _VERSION.search(text))), None)


def _environment_settings(python: Path) -> dict[str, str] | None:
    """Read pyvenv.cfg; return None if ``python`` is not in a virtual environment."""
    config = python.parent.parent / "pyvenv.cfg"
    if not config.exists():
        return None
    pairs = (line.partition("=") for line in config.read_text(encoding="utf-8").splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def _site_folders_of(prefix: Path, version: str | None) -> Iterator[Path]:
    """Yield the package folders below ``prefix``.

    On Debian, apt installs into lib/python3/dist-packages, and pip installs below local.
    """
    for library in (prefix / "local/lib", prefix / "lib"):
        for folder in (*sorted(library.glob(f"python{version or '3*'}")), library / "python3"):
            yield from (path for name in ("site-packages", "dist-packages") if (path := folder / name).is_dir())


def judge_worker_packages(facts: WorkerFacts) -> Judgement:
    """Judge the packages: the suite's own worker must match every pin, the user's own only what the stack needs."""
    subject = Subject(f"Python {PYTHON_VERSION} and {facts.num_wanted} packages, as pinned", facts)
    if why := _why_not_checked(facts):
        return subject.not_checked(f"{facts.python}: {why}")
    if fault := _packages_fault(facts):
        return subject.faulty(replace(fault, found=f"{facts.python}: {fault.found}"))
    return subject.ok(f"{facts.python}: {facts.num_wanted} of {facts.num_wanted} as wanted")


def _why_not_checked(facts: WorkerFacts) -> str | None:
    if not facts.exists and not facts.is_own:
        return "not installed yet: the first bench installs it (about 7 GB)"
    if facts.exists and not facts.is_complete:
        return "its installation did not finish: the next bench repeats it"
    is_readable = facts.num_installed or facts.python_version not in (None, PYTHON_VERSION)
    if facts.exists and facts.is_own and not is_readable:
        return "its packages are not in the usual folders; bench asks this Python itself"
    return None


def _packages_fault(facts: WorkerFacts) -> Fault | None:
    by_rebuilding = f"Remove {Path(facts.python).parent.parent}: the next bench installs it again."
    if not facts.exists:
        repair = "Pass the path of a Python with Isaac Lab to --worker-python, or leave the option out."
        return Fault(word="worker_python_missing", found="there is no such Python", repair=repair)
    if facts.python_version not in (None, PYTHON_VERSION):
        repair = f"Pass a Python {PYTHON_VERSION} to --worker-python." if facts.is_own else by_rebuilding
        return Fault(word="python_version", found=f"Python {facts.python_version}", repair=repair)
    by_the_user = (
        "Install the bundle again, made with what `python3 -m pip freeze --all` prints here as --target-has."
        if is_bundled()
        else "Install these versions there, or leave --worker-python out: results of other versions do not compare."
    )
    fault = Fault(
        word="packages_missing",
        found="",
        repair=by_the_user if facts.is_own else by_rebuilding,
        verdict="warning" if facts.is_own and not facts.unusable else "failure",
    )
    if facts.differences:
        is_missing = any(difference.found is None for difference in facts.differences)
        word = "packages_missing" if is_missing else "packages_differ"
        return replace(fault, word=word, found=describe(facts.differences))
    if facts.changed:
        return replace(fault, word="packages_changed", found=_first(facts.changed))
    if facts.elsewhere:
        repair = f"Take these folders out of PYTHONPATH ({ROOT} always comes first), or move them away."
        return replace(fault, word="packages_elsewhere", found=_first(facts.elsewhere), repair=repair)
    return None


def describe(differences: Iterable[PackageDifference]) -> str:
    """List the first few differences, missing packages before other versions."""
    ordered = sorted(differences, key=lambda difference: (difference.found is not None, difference.name))
    return _first(
        f"{difference.name} is {difference.found or 'missing'}"
        + (f", not {difference.wanted}" if difference.wanted else "")
        for difference in ordered
    )


def _first(texts: Iterable[str]) -> str:
    shown = list(texts)
    more = len(shown) - SHOWN
    return "; ".join(shown[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


RootState = Literal["none", "address", "missing", "no_manifest", "bad_manifest", "unreadable", "read"]


class _File(BaseModel):
    sha256: str
    stand_in: str | None


class _Manifest(BaseModel):
    """The fields of a manifest that this check uses; ``tasks.assets`` writes it."""

    format: Literal[1]
    files: dict[str, _File]


@dataclass(frozen=True, kw_only=True)
class AssetFacts:
    root: str | None  # None: Isaac Lab's own default
    is_own: bool  # from the user's ISAACSIM_ASSET_ROOT
    state: RootState
    problem: str | None = None  # what is wrong with the manifest, or which file cannot be read and why
    manifest_sha256: str | None = None
    num_files: int = 0
    num_stand_ins: int = 0
    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()


def read_assets(root: str | Path | None, *, is_own: bool) -> AssetFacts:
    """Hash the files that the manifest below ``root`` names."""
    state: RootState = "read"
    if root is None:
        state = "none"
    elif "://" in str(root):
        state = "address"
    elif not is_folder(Path(root)):
        state = "missing"
    facts = AssetFacts(root=None if root is None else str(root), is_own=is_own, state=state)
    if root is None or state != "read":
        return facts
    try:
        return _hashed(Path(root), facts)
    except OSError as error:  # for example, another user filled the cache
        return replace(facts, state="unreadable", problem=f"{error.filename}: {error.strerror}")


def _hashed(root: Path, facts: AssetFacts) -> AssetFacts:
    manifest_path = root / "manifest.json"
    if not is_there(manifest_path):
        return replace(facts, state="no_manifest")
    try:
        files = _Manifest.model_validate_json(read_input(manifest_path)).files
    except ValidationError as error:
        return replace(facts, state="bad_manifest", problem=str(error).splitlines()[0])
    there = {name: (root / name).is_file() for name in files}
    return replace(
        facts,
        manifest_sha256=sha256(manifest_path),
        num_files=len(files),
        num_stand_ins=sum(file.stand_in is not None for file in files.values()),
        missing=tuple(name for name, is_there in there.items() if not is_there),
        changed=tuple(name for name, file in files.items() if there[name] and sha256(root / name) != file.sha256),
    )


def judge_asset_root(facts: AssetFacts) -> Judgement:
    """Check the asset root: the manifest exists, and every file has the hash that the manifest gives."""
    subject = Subject("a manifest, and every file as it says", facts)
    not_checked = {
        "none": "Isaac Lab's own default, on the network",
        "address": f"{facts.root} is on the network",
        "missing": "not built yet: the first bench builds it",
        "no_manifest": f"{facts.root} has no labscale manifest",
    }
    if facts.state in not_checked and not (facts.state == "missing" and facts.is_own):
        return subject.not_checked(not_checked[facts.state])
    elsewhere = "unset ISAACSIM_ASSET_ROOT" if facts.is_own else "set LABSCALE_CACHE to a folder of yours"
    repair = (
        "Correct ISAACSIM_ASSET_ROOT, or unset it: bench then builds the assets from the installed wheels."
        if facts.is_own
        else f"Remove {facts.root}: the next bench builds it again."
    )
    words = {
        "missing": ("asset_root_missing", f"{facts.root} does not exist", repair),
        "bad_manifest": ("manifest_invalid", f"{facts.root}/manifest.json: {facts.problem}", repair),
        "unreadable": (
            "assets_unreadable",
            f"cannot be read: {facts.problem}",
            f"Have their owner run chmod -R a+rX {facts.root}, or {elsewhere}: bench then builds its own.",
        ),
    }
    if facts.state in words:
        return subject.failure(*words[facts.state])
    if facts.missing:
        return subject.failure("assets_missing", f"missing: {', '.join(facts.missing)}", repair)
    if facts.changed:
        return subject.failure("assets_changed", f"not as in the manifest: {', '.join(facts.changed)}", repair)
    return subject.ok(f"{facts.num_files} files in {facts.root}, {facts.num_stand_ins} of them stand-ins")


@dataclass(frozen=True, kw_only=True)
class KernelFacts:
    cache_dir: str
    num_modules: int
    damaged: tuple[str, ...]  # what is wrong with each damaged module


def read_kernels(cache_dir: Path) -> KernelFacts:
    return KernelFacts(
        cache_dir=str(cache_dir),
        num_modules=sum(1 for _ in damage.modules(cache_dir)),
        damaged=tuple(damage.damaged_modules(cache_dir).values()),
    )


def judge_kernel_cache(facts: KernelFacts) -> Judgement:
    """Check Warp's cache of compiled kernels: every run fails that needs a damaged module."""
    subject = Subject("no file that is cut short", facts)
    if facts.damaged:
        return subject.warning(
            "kernel_cache_damaged",
            f"{counted(len(facts.damaged), 'damaged module')} in {facts.cache_dir}: {facts.damaged[0]}",
            f"Run bench: it moves them away and compiles them again. Or remove {facts.cache_dir}.",
        )
    return subject.ok(f"every file in {facts.cache_dir} is whole" if facts.num_modules else "nothing compiled yet")
