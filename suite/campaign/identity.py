"""``campaign.json`` identifies the campaign of a results folder; another campaign is refused.

The file has every value that must be equal for results to share a folder, and the last command's rule of how many
rounds a case gets.
"""

import hashlib
import json
import os
import reprlib
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import ConfigDict, Field, with_config

from suite.campaign import run_log
from suite.campaign.folder import Folder, locked, require_identity
from suite.campaign.state import Campaign
from suite.errors import CampaignError, StoreError
from suite.files.json_file import read_json, replace_json
from suite.records.folders import CAMPAIGN_FILE
from suite.records.validation import OLDER
from suite.schema.rank_protocol import recorded
from suite.schema.record import SCHEMA_VERSION
from suite.statistics.stopping_rule import Rule
from suite.statistics.twins import is_twin

RULE: Final = ("rounds", "precision", "max_rounds")  # may differ between commands
FORMAT: Final = "schema_version"  # of the records in the folder
SPELLED: Final = "matrix"  # the user's spelling; not compared, because one file has many
CASES: Final = "matrix_sha256"  # hash of the cases; means nothing to a user
# These also change the hash, and users know them.
IN_CASES: Final = ("seed", "a_a", "device", "stack", "assets", "with_packages")
OF_CODE: Final = ("code_sha256", "git_commit", "git_dirty")
# A file may contain values of any size.
_SHOWN: Final = reprlib.Repr(maxlevel=3, maxlist=64, maxstring=200, maxother=200)


@with_config(ConfigDict(extra="allow", strict=True, allow_inf_nan=False))
class _Stored(TypedDict, total=False):
    """The fields that are computed with; all others are only compared."""

    rounds: Annotated[int, Field(ge=1)] | None
    precision: Annotated[float, Field(gt=0, lt=1)] | None
    max_rounds: Annotated[int, Field(ge=1)] | None


def read_identity(path: Path) -> dict[str, Any]:
    """Read a ``campaign.json``. Raises CampaignError if it cannot be read."""
    advice = (
        f"Its rounds are kept: store the finished ones with `nox -s store -- {shlex.quote(str(path.parent))}`, and "
        "continue in another folder with --out."
    )
    try:
        return {**(read_json(path, _Stored, next_step=advice) or {})}
    except StoreError as error:
        raise CampaignError(str(error)) from error


def identity(campaign: Campaign) -> dict[str, object]:
    """Every value that must be equal for results to share a folder, and the rule; no options that select cases."""
    machine, is_measured = campaign.machine, campaign.device == "cuda"
    own_workers = campaign.runtime.own_workers if campaign.runtime else {}
    own_pins = {worker.pins_sha256 for own, worker in own_workers.items() if own.pins}
    return {
        **_of_options(campaign),
        "rounds": campaign.rule.rounds,
        "precision": campaign.rule.precision,
        "max_rounds": None if campaign.rule.precision is None else campaign.rule.max_rounds,
        "cpus_per_rank": len(campaign.cores_of_gpus[0]) if campaign.cores_of_gpus else None,
        "asset_sha256": machine.asset_sha256,
        "worker_pins_sha256": machine.worker_pins_sha256,
        "own_pins_sha256": sorted(own_pins, key=str) or None,
        "worker_packages": list(machine.worker_packages) or None,
        "code_sha256": campaign.sources.sha256,
        # Results of a CPU are not submitted, so a commit in between that changes no code of a rank does no harm.
        "git_commit": machine.git_commit if is_measured else None,
        "git_dirty": machine.git_dirty if is_measured else None,
        "cpu_model": machine.cpu_model,
        "gpus": [gpu.name for gpu in machine.gpus],
        "driver_version": machine.driver_version,
        "image_digest": campaign.runtime.image_digest if campaign.runtime else None,
    }


def _of_options(campaign: Campaign) -> dict[str, object]:
    """What is known from options and matrix alone; the rest is known once the worker is installed."""
    options, whole = campaign.options, campaign.whole
    return {
        FORMAT: SCHEMA_VERSION,
        SPELLED: options.selection.matrix,
        "capacity": options.search.capacity,
        "bisect": options.search.bisect and options.search.bisect.package,
        CASES: hashlib.sha256("\n".join(map(repr, whole)).encode()).hexdigest(),
        "seed": whole[0].seed,
        "a_a": any(map(is_twin, whole)),
        "device": campaign.device,
        "stack": campaign.stack,
        "assets": options.setup.assets,
        "with_packages": sorted(options.setup.with_packages) or None,
        "host_label": campaign.machine.host_label,
        "emulated_nodes": campaign.resources.nnodes if campaign.resources.is_one_host else None,
        "environment": recorded(os.environ) or None,
    }


@contextmanager
def opened(root: Path, whose: Mapping[str, object]) -> Iterator[Folder]:
    """Lock ``root`` for a campaign with this identity, store its rule in ``campaign.json``, and mend the run log.

    Raises:
        CampaignError: another process uses it, it belongs to another or an unknown campaign, or it cannot be written
            or locked.
        StoreError: the run log cannot be read or written.
    """
    with locked(root) as folder:
        path = root / CAMPAIGN_FILE
        stored = read_identity(path) if path.exists() else whose
        _refuse_others(root, stored, whose)
        now = {**stored, **{name: whose.get(name) for name in RULE}}
        if now != stored or not path.exists():
            replace_json(now, path, sort_keys=True)
        run_log.resume(root)
        yield folder


def refuse_other_options(campaign: Campaign) -> None:
    """Refuse a folder of a campaign with other options, before anything is installed or checked.

    Raises:
        CampaignError: the options differ, or the campaign of the results in the folder is unknown.
    """
    require_identity(campaign.out)
    path = campaign.out / CAMPAIGN_FILE
    if path.exists():
        wanted = _of_options(campaign)
        stored = {name: value for name, value in read_identity(path).items() if name in wanted}
        _refuse_others(campaign.out, stored, wanted)


def _refuse_others(root: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Raise CampaignError with every value that differs, if one does."""
    wanted = json.loads(json.dumps(wanted))
    names = [name for name in sorted({*stored, *wanted} - {*RULE, SPELLED}) if stored.get(name) != wanted.get(name)]
    if FORMAT in names:
        names = [FORMAT]
    elif set(names) & set(IN_CASES):  # the hash changes with any of these, so it adds nothing to them
        names = [name for name in names if name != CASES]
    if names:
        raise CampaignError(
            f"{root} has the results of another campaign, which must not be mixed with these:\n  "
            + "\n  ".join(_difference(name, stored, wanted) for name in names)
            + "\nChoose another folder with --out, or give the options of that campaign to continue it."
        )


def _difference(name: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    there, now = _SHOWN.repr(stored.get(name)), _SHOWN.repr(wanted.get(name))
    if name == FORMAT:
        return f"{name}: there {there}, this labscale reads {wanted.get(name)}. {OLDER}"
    if name != CASES:
        why = ", since labscale's own code changed; go back to that state to continue it" if name in OF_CODE else ""
        return f"{name}: there {there}, now {now}{why}"
    return (
        f"cases: there from the matrix {stored.get(SPELLED)!r}, now from {wanted.get(SPELLED)!r}, and they differ: the "
        "matrix is another or was edited, --stack differs, or labscale has another version"
    )


def stored_rule(identity: Mapping[str, Any]) -> Rule:
    """The rule in a ``campaign.json``. Without ``rounds`` it counts as 0."""
    rounds, precision = identity.get("rounds") or 0, identity.get("precision")
    return Rule(rounds=rounds, precision=precision, max_rounds=identity.get("max_rounds") or rounds)
