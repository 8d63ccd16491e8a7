"""Checks the asset root: the manifest exists, and every file has the hash that the manifest gives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from suite.env_check.check import Judgement, Subject
from suite.env_check.host.exists import is_folder, is_there
from suite.files.input_file import read_input
from suite.install.pins import sha256

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
    problem: str | None  # what is wrong with the manifest, or which file cannot be read and why
    manifest_sha256: str | None
    num_files: int
    num_stand_ins: int
    missing: tuple[str, ...]
    changed: tuple[str, ...]


def read(root: str | Path | None, *, is_own: bool) -> AssetFacts:
    """Hash the files that the manifest below ``root`` names."""
    if root is None:
        return _facts(root, is_own=is_own, state="none")
    if "://" in str(root):
        return _facts(root, is_own=is_own, state="address")
    if not is_folder(Path(root)):
        return _facts(root, is_own=is_own, state="missing")
    try:
        return _read_folder(Path(root), is_own=is_own)
    except OSError as error:  # for example, another user filled the cache
        return _facts(root, is_own=is_own, state="unreadable", problem=f"{error.filename}: {error.strerror}")


def _read_folder(root: Path, *, is_own: bool) -> AssetFacts:
    manifest_path = root / "manifest.json"
    if not is_there(manifest_path):
        return _facts(root, is_own=is_own, state="no_manifest")
    try:
        manifest = _Manifest.model_validate_json(read_input(manifest_path))
    except ValidationError as error:
        return _facts(root, is_own=is_own, state="bad_manifest", problem=str(error).splitlines()[0])
    there = {name: (root / name).is_file() for name in manifest.files}
    return AssetFacts(
        root=str(root),
        is_own=is_own,
        state="read",
        problem=None,
        manifest_sha256=sha256(manifest_path),
        num_files=len(manifest.files),
        num_stand_ins=sum(file.stand_in is not None for file in manifest.files.values()),
        missing=tuple(name for name, is_there in there.items() if not is_there),
        changed=tuple(
            name for name, file in manifest.files.items() if there[name] and sha256(root / name) != file.sha256
        ),
    )


def _facts(root: str | Path | None, *, is_own: bool, state: RootState, problem: str | None = None) -> AssetFacts:
    return AssetFacts(
        root=None if root is None else str(root), is_own=is_own, state=state, problem=problem, manifest_sha256=None,
        num_files=0, num_stand_ins=0, missing=(), changed=(),
    )  # fmt: skip


def judge_asset_root(facts: AssetFacts) -> Judgement:
    subject = Subject("a manifest, and every file as it says", facts)
    not_checked = {
        "none": "Isaac Lab's own default, on the network",
        "address": f"{facts.root} is on the network",
        "missing": "not built yet: the first bench builds it",
        "no_manifest": f"{facts.root} has no labscale manifest",
    }
    faults = {
        "missing": ("asset_root_missing", f"{facts.root} does not exist"),
        "bad_manifest": ("manifest_invalid", f"{facts.root}/manifest.json: {facts.problem}"),
        "unreadable": ("assets_unreadable", f"cannot be read: {facts.problem}"),
    }
    if facts.state in not_checked and not (facts.state == "missing" and facts.is_own):
        return subject.not_checked(not_checked[facts.state])
    if facts.missing:
        fault, found = "assets_missing", f"missing: {', '.join(facts.missing)}"
    elif facts.changed:
        fault, found = "assets_changed", f"not as in the manifest: {', '.join(facts.changed)}"
    elif facts.state == "read":
        return subject.ok(f"{facts.num_files} files in {facts.root}, {facts.num_stand_ins} of them stand-ins")
    else:
        fault, found = faults[facts.state]
    return subject.failure(fault, found, _repair(fault, facts))


def _repair(fault: str, facts: AssetFacts) -> str:
    if fault == "assets_unreadable":
        elsewhere = "unset ISAACSIM_ASSET_ROOT" if facts.is_own else "set LABSCALE_CACHE to a folder of yours"
        return f"Have their owner run chmod -R a+rX {facts.root}, or {elsewhere}: bench then builds its own."
    if facts.is_own:
        return "Correct ISAACSIM_ASSET_ROOT, or unset it: bench then builds the assets from the installed wheels."
    return f"Remove {facts.root}: the next bench builds it again."
