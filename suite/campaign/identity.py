"""``campaign.json`` says which campaign a results folder belongs to; another campaign is refused.

It has what must be equal for results to share a folder, and the rule of the last command: how many rounds a case gets.
"""

import json
import reprlib
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import Field

from suite.campaign.folder import Folder, locked, require_identity
from suite.campaign.state import Campaign
from suite.errors import CampaignError
from suite.files.json_file import fault_of, parsed, replace_json
from suite.records.folders import CAMPAIGN_FILE
from suite.statistics.stopping_rule import Rule

RULE: Final = ("rounds", "precision", "max_rounds")  # each command has its own
SPELLED: Final = "matrix"  # as the user named it; one file has many spellings, and its cases have a hash of their own
CASES: Final = "matrix_sha256"  # that hash, which tells a user nothing
IN_CASES: Final = ("seed", "a_a", "device", "stack", "assets")  # cases follow from these too, and users know them
# What follows from options and matrix; the rest is known when the worker is there.
OF_OPTIONS: Final = (
    "matrix", "capacity", "matrix_sha256", "seed", "a_a", "device", "stack", "assets", "host_label", "emulated_nodes",
)  # fmt: skip
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


def identity(campaign: Campaign) -> dict[str, object]:
    """What must be equal for results to share a folder, and the rule. Narrowing options are not in it."""
    machine, whole = campaign.machine, campaign.whole
    if whole is None:
        raise AssertionError("make_plan comes before identity")
    return {
        "matrix": campaign.options.selection.matrix,
        "capacity": campaign.options.search.capacity,
        "matrix_sha256": whole.sha256,
        "seed": whole.seed,
        "a_a": whole.has_twins,
        "rounds": campaign.rule.rounds,
        "precision": campaign.rule.precision,
        "max_rounds": None if campaign.rule.precision is None else campaign.rule.max_rounds,
        "device": campaign.device,
        "cpus_per_rank": len(campaign.cores_of_gpus[0]) if campaign.cores_of_gpus else None,
        "stack": campaign.stack,
        "assets": campaign.options.setup.assets,
        "asset_sha256": machine.asset_sha256,
        "worker_pins_sha256": machine.worker_pins_sha256,
        "worker_packages": list(machine.worker_packages) or None,  # campaigns of earlier versions have None for none
        "cpu_model": machine.cpu_model,
        "gpus": [gpu.name for gpu in machine.gpus],
        "driver_version": machine.driver_version,
        "host_label": machine.host_label,
        "emulated_nodes": campaign.resources.nnodes if campaign.resources.is_one_host else None,
        "image_digest": campaign.runtime.image_digest if campaign.runtime else None,
    }


@contextmanager
def opened(root: Path, whose: Mapping[str, object]) -> Iterator[Folder]:
    """Lock the folder ``root`` for a campaign with this identity, whose rule is from now on the one in campaign.json.

    Raises:
        CampaignError: another process uses it, it belongs to another campaign or nobody can tell to which, or it cannot
            be written or locked.
    """
    with locked(root) as folder:
        path = root / CAMPAIGN_FILE
        found = read(path) if path.exists() else whose
        _refuse_others(root, found, whose)
        now = {**found, **{name: whose.get(name) for name in RULE}}
        if now != found or not path.exists():
            replace_json(now, path, sort_keys=True)
        yield folder


def refuse_other_options(campaign: Campaign) -> None:
    """Refuse a folder that other options began, before anything is installed or checked for these.

    Raises:
        CampaignError: the options differ, or nobody can tell to which campaign the results in the folder belong.
    """
    require_identity(campaign.out)
    path = campaign.out / CAMPAIGN_FILE
    if path.exists():
        found, wanted = (
            {name: value for name, value in whose.items() if name in OF_OPTIONS}
            for whose in (read(path), identity(campaign))
        )
        _refuse_others(campaign.out, found, wanted)


def _refuse_others(root: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Name all that differs and must be equal for results to share the folder ``root``.

    Raises:
        CampaignError: something differs.
    """
    wanted = json.loads(json.dumps(wanted))
    if names := _differing(found, wanted):
        raise CampaignError(
            f"{root} holds another campaign's results, which must not be mixed with these:\n  "
            + "\n  ".join(_said(name, found, wanted) for name in names)
            + "\nChoose another folder with --out, or give the options of that campaign to go on with it."
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
