"""A version as its pages see it: which sets they show, and which cases of a set."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from reports.verification.finding import Json
from reports.verification.regular_file import read_bytes
from reports.verification.samples.bundles import BUNDLES
from reports.verification.samples.case_file import CASES
from reports.verification.samples.set_folder import StoredSet

ENV_CHECKS: Final = "env_check"
MANIFEST: Final = "report.toml"  # a folder with it is a version
PAGE_FIGURES: Final = "page_figures.json"  # what pages say besides figures.json


@dataclass(frozen=True, kw_only=True)
class StoredVersion:
    """The sets of one folder in the order of its ``report.toml``; ``roles`` by the name of a set's folder.

    ``contributors`` says whose a set is, if not the project's own; ``imported`` are folders with results of other
    tools; ``older`` are older versions, newest first.
    """

    sets: tuple[StoredSet, ...]
    roles: Mapping[str, str] = field(default_factory=dict)
    contributors: Mapping[str, str] = field(default_factory=dict)
    name: str = ""
    imported: tuple[Path, ...] = ()
    older: tuple["StoredVersion", ...] = field(default=(), repr=False)

    @property
    def shown(self) -> tuple[StoredSet, ...]:
        """The sets that are meant for the pages: those that show scaling, or else every one that is not archived."""
        kept = tuple(one for one in self.sets if self.role(one) != "archive")
        return tuple(one for one in kept if self.role(one) == "scaling") or kept

    @cached_property
    def with_speeds(self) -> tuple[StoredSet, ...]:
        """Those shown in which a run on a GPU settled: only their speeds mean something."""
        return tuple(one for one in self.shown if one.has_speeds)

    def whose(self, one: StoredSet) -> str | None:
        return self.contributors.get(one.folder.name)

    @property
    def own(self) -> tuple[StoredSet, ...]:
        """Those that nobody else measured."""
        return tuple(one for one in self.sets if one.folder.name not in self.contributors)

    @property
    def env_checks(self) -> list[Path]:
        """What ``env_check --json`` printed on hosts: files beside the sets."""
        folders = {folder.parent for folder in (*(one.folder for one in self.sets), *self.imported)}
        return sorted(path for folder in folders for path in folder.glob(f"{ENV_CHECKS}/*.json"))

    def role(self, one: StoredSet) -> str:
        return self.roles.get(one.folder.name, "scaling")


def stored_version(
    sets: Sequence[StoredSet],
    roles: Mapping[str, str],
    contributors: Mapping[str, str] | None = None,
    *,
    name: str = "",
    imported: Sequence[Path] = (),
    older: Sequence[StoredVersion] = (),
) -> StoredVersion:
    """Return the sets in the order of ``roles``. Raises ValueError for a set that has none."""
    order = [*roles]
    in_order = tuple(sorted(sets, key=lambda one: order.index(one.folder.name)))
    return StoredVersion(
        sets=in_order,
        roles=roles,
        contributors=contributors or {},
        name=name,
        imported=tuple(imported),
        older=tuple(older),
    )


def imported_of(folder: Path) -> list[Path]:
    """Return the folders of a version that have results of other tools."""
    return sorted(path.parent for path in folder.glob(f"*/{BUNDLES}"))


def roles_of(folder: Path) -> dict[str, str]:
    """Return the role of each set: those that ``report.toml`` names in its order, then others, which show scaling.

    Raises ValueError and LookupError if the file is not what labscale writes.
    """
    there = sorted(path.parent.name for path in folder.glob(f"*/{CASES}"))  # results of other tools have no cases
    named = {entry["folder"]: entry.get("role", "scaling") for entry in _entries(folder) if entry["folder"] in there}
    return {**named, **{name: "scaling" for name in there if name not in named}}


def contributors_of(folder: Path) -> dict[str, str]:
    """Return who measured a set, of those that ``report.toml`` calls contributed. Raises as ``roles_of`` does."""
    return {entry["folder"]: entry["contributed_by"] for entry in _entries(folder) if "contributed_by" in entry}


def _entries(folder: Path) -> list[Json]:
    path = folder / MANIFEST
    return tomllib.loads(read_bytes(path).decode()).get("set", []) if path.is_file() else []
