"""What decides the speed of a run, as files: the ranks' part of the checkout, and the packages of the workers.

A record names one commit and one set of pins. So a campaign stops when these files change while it runs.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

from suite.env_check.worker import site_folders
from suite.errors import CampaignError
from suite.files.paths import ROOT
from suite.install.damage import Stamps, stamps
from suite.install.pins import sha256

OF_RANKS: Final = (
    "tasks",
    "suite/schema",
    "suite/errors.py",
    "suite/external/core_probe.py",
    "suite/external/parent_death.py",
)


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The files when this command began."""

    code: Mapping[str, str] = field(default_factory=lambda: code_of(ROOT))  # path in the checkout -> SHA-256
    packages: Mapping[Path, Stamps] = field(default_factory=dict)  # by the worker's Python

    @property
    def sha256(self) -> str:
        """Identify the code."""
        return hashlib.sha256(json.dumps(self.code, sort_keys=True).encode()).hexdigest()

    def with_workers(self, pythons: Iterable[Path]) -> Self:
        """Return the files with those of these workers. One that is not on this machine has none."""
        return replace(self, packages={python: _packages(python) for python in pythons})

    def require_same(self, python: Path) -> None:
        """Compare the code, and the packages of the worker with this Python.

        Raises:
            CampaignError: a file differs, is new, or is missing.
        """
        changed = _differing(self.code, code_of(ROOT))
        if python in self.packages:
            changed += _differing(self.packages[python], _packages(python))
        if changed:
            more = f" and {len(changed) - 1} more" if changed[1:] else ""
            raise CampaignError(
                f"{changed[0]}{more} changed since this command began, so its runs would not be of one version. The "
                "run in progress is not counted, and every finished one is kept. Undo the change and run the same "
                "command again, or measure the new state in another folder with --out."
            )


def code_of(root: Path) -> dict[str, str]:
    """Return path -> SHA-256 of the checkout's Python files that run in a rank."""
    paths = (path for part in OF_RANKS for path in (root / part).rglob("*.py") if path.is_file())
    files = (root / part for part in OF_RANKS if part.endswith(".py"))
    return {path.relative_to(root).as_posix(): sha256(path) for path in sorted({*paths, *files})}


def _packages(python: Path) -> Stamps:
    return stamps(list(site_folders(python, {})))


def _differing[T](before: Mapping[str, T], now: Mapping[str, T]) -> list[str]:
    return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
