"""``campaign.json``, which says whose the results of a folder are: read it, and refuse another campaign's."""

import json
import reprlib
import shlex
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import Field

from suite.errors import CampaignError
from suite.files.json_file import fault_of, parsed
from suite.records.folders import CAMPAIGN_FILE
from suite.statistics.stopping_rule import Rule

IDENTITY_FILE: Final = CAMPAIGN_FILE
RULE: Final = ("rounds", "precision", "max_rounds")  # may ask for more than at first
SPELLED: Final = "matrix"  # as the user named it; one file has many spellings, and its cases have a hash of their own
CASES: Final = "matrix_sha256"  # that hash, which tells a user nothing
IN_CASES: Final = ("seed", "a_a", "device", "stack", "assets")  # cases follow from these too, and users know them
NEWER: Final = ("seed", "a_a")  # campaigns that earlier versions began do not say these
_SHOWN: Final = reprlib.Repr(maxlevel=3, maxlist=64, maxstring=200, maxother=200)  # what a file holds may be any size


class _Rule(TypedDict, total=False):
    """What is computed with; all else is only compared."""

    rounds: Annotated[int, Field(ge=1)] | None
    precision: Annotated[float, Field(gt=0, lt=1)] | None
    max_rounds: Annotated[int, Field(ge=1)] | None


def read(path: Path) -> dict[str, Any]:
    """What is in a campaign.json.

    Raises:
        CampaignError: it cannot be read.
    """
    try:
        found = parsed(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error.strerror or str(error)) from error
    except ValueError as error:
        raise _unreadable(path, str(error)) from error
    if not isinstance(found, dict):
        raise _unreadable(path, f"it holds a {type(found).__name__} where a JSON object was expected")
    if fault := fault_of({name: found[name] for name in RULE if name in found}, _Rule):
        raise _unreadable(path, fault)
    return found


def _unreadable(path: Path, why: str) -> CampaignError:
    return CampaignError(
        f"{path} is not readable: {why}. Its rounds are kept: store those that have ended with `nox -s store --"
        f" {shlex.quote(str(path.parent))}`, and go on in another folder with --out."
    )


def asks_for_more(path: Path, identity: Mapping[str, Any], *, names: Collection[str] | None = None) -> bool:
    """Whether a campaign of this identity asks for more rounds than the one that began the folder of ``path``.

    They must be one: of ``names`` where these are all that is known so far, of everything otherwise.

    Raises:
        CampaignError: they are not, fewer rounds are asked for, or the file cannot be read.
    """
    found, wanted = read(path), json.loads(json.dumps(identity))
    there, now = (
        {name: value for name, value in whose.items() if names is None or name in names} for whose in (found, wanted)
    )
    _refuse_others(path.parent, there, now)
    if all(found.get(name) == wanted.get(name) for name in RULE):
        return False
    _refuse_fewer(path.parent, found, wanted)
    return True


def _refuse_others(root: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Name all that has to be equal for results to share the folder ``root``, and is not.

    Raises:
        CampaignError: there is some.
    """
    if names := _differing(found, wanted):
        raise CampaignError(
            f"{root} holds another campaign's results, which must not be mixed with these:\n  "
            + "\n  ".join(_said(name, found, wanted) for name in names)
            + "\nChoose another folder with --out, or give the options of that campaign to go on with it."
        )


def _refuse_fewer(root: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Name both rules where the folder ``root`` was begun with more rounds than are wanted now.

    Raises:
        CampaignError: it was.
    """
    now, at_first = rule_of(wanted), rule_of(found)
    if not now.is_at_least(at_first):
        raise CampaignError(
            f"{root} was begun with {at_first} for each case, now it is {now}. Rounds can "
            "be added, and none are taken away: ask for at least as many, or choose another folder with --out."
        )


def _differing(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    unknown = {name for name in NEWER if name not in found}
    names = sorted({*found, *wanted} - {*RULE, SPELLED} - unknown)
    names = [name for name in names if found.get(name) != wanted.get(name)]
    # The hash follows from any of them, and says nothing beside it.
    return [name for name in names if name != CASES or not set(names) & set(IN_CASES)]


def _said(name: str, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    if name != CASES:
        return f"{name}: there {_SHOWN.repr(found.get(name))}, now {_SHOWN.repr(wanted.get(name))}"
    options = ["--stack", *(f"--{name.replace('_', '-')}" for name in NEWER if name not in found)]
    return (
        f"cases: there of the matrix {found.get(SPELLED)!r}, now of {wanted.get(SPELLED)!r}, and not the same: it is "
        f"another or was edited, {' or '.join(options)} is another, or labscale is of another version"
    )


def rule_of(identity: Mapping[str, Any]) -> Rule:
    """Of a campaign.json; those of earlier versions say nothing where the matrix gave the number, so any is more."""
    rounds, precision = identity.get("rounds") or 0, identity.get("precision")
    return Rule(rounds=rounds, precision=precision, max_rounds=identity.get("max_rounds") or rounds)
