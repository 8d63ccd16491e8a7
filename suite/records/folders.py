"""Lists the files of a folder of results: one set, or several sets. Opens no file.

It does not use ``rglob``, which silently skips folders that it may not read.
"""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from suite.errors import StoreError
from suite.schema.configuration_file import CONFIGURATION_FILE

CASES: Final = "cases"
TWINS: Final = "a_a"  # the repeats of the baselines, kept out of the results: a report would take them for cases
ALONE: Final = "alone"  # copies that run alone, to compare with rounds in turns; kept out of the results too
RAW: Final = "raw"  # the files of each round of a campaign
CAMPAIGN_FILE: Final = "campaign.json"  # describes the campaign of a folder
PLAN_FILE: Final = "plan.json"  # the cases that a campaign was to measure
RUN_LOG: Final = "runs.log"  # a line for each run that ended, each with the hash of the line before
_OF_A_ROUND: Final = frozenset({CONFIGURATION_FILE, "record.json"})
MAX_NAMED: Final = 5


def case_files(folder: Path) -> list[Path]:
    """Return every JSON file below ``folder/cases``, or below ``folder`` if there is no set at or below it, sorted.

    Raises StoreError if ``folder`` contains sets but is none, contains a campaign without a stored case, or cannot be
    read.
    """
    ours = set_folders(folder)
    if not ours:
        found = json_files(folder)
        _refuse_campaigns(found)
        return found
    if folder not in ours:
        raise StoreError(
            f"{folder} is not one set of results; below it there are {_named(ours, folder)}."
            f" Name one set, for example {ours[0]}."
        )
    stored = json_files(folder / CASES)
    if not stored:
        _refuse_campaigns(json_files(folder))
    return stored


def _refuse_campaigns(files: Sequence[Path]) -> None:
    """Raise StoreError for a file of a campaign: the files of its rounds are no cases."""
    for path in files:
        root = _campaign_of(path)
        if root is not None:
            raise StoreError(
                f"{root} is a campaign of which no case is stored yet. Run the same `nox -s bench` again to go on with"
                f" it, or store the rounds that have ended with `nox -s store -- {shlex.quote(str(root))}`."
            )


def _campaign_of(path: Path) -> Path | None:
    if path.name == CAMPAIGN_FILE:
        return path.parent
    if path.name not in _OF_A_ROUND:
        return None
    return next((folder.parent for folder in path.parents if folder.name == RAW), path.parent)


def set_folders(folder: Path) -> list[Path]:
    """Return every folder with ``cases`` in it, at or below ``folder``, sorted.

    A set within a set is left out: it is a report's download and repeats the same cases. Raises StoreError for a folder
    that cannot be read.
    """
    found = []
    for root, folders, _ in folder.walk(on_error=_refuse_unreadable):
        if _has_folder(root, CASES):
            found.append(root)
            folders.clear()
    return sorted(found)


def json_files(folder: Path) -> list[Path]:
    """Return all below ``folder``, sorted; none if it is missing. Raises StoreError for an unreadable folder."""
    paths = (root / name for root, _, names in folder.walk(on_error=_refuse_unreadable) for name in names)
    return sorted(path for path in paths if path.suffix == ".json")


def _has_folder(folder: Path, name: str) -> bool:
    try:
        return (folder / name).is_dir()
    except OSError as error:
        _refuse_unreadable(error)
        return False


def _refuse_unreadable(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):  # a missing folder has no files
        raise StoreError(
            f"{error.filename} cannot be read: {error.strerror}. Check the path and its permissions."
        ) from error


def _named(sets: Sequence[Path], folder: Path) -> str:
    names = [one.relative_to(folder).as_posix() for one in sets]
    more = len(names) - MAX_NAMED
    return ", ".join(names[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
