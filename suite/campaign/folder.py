"""The folder of a campaign: its paths, its finished rounds, the lock that excludes other processes, and whose it is.

ARCHITECTURE.md has the layout. A round is finished when its ``record.json`` exists; nothing finished is overwritten.
``campaign.json`` has every value that must be equal for results to share the folder, and the last command's rule of how
many rounds a case gets. Another campaign is refused.
"""

import errno
import fcntl
import hashlib
import os
import reprlib
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import ConfigDict, Field, with_config

from suite.campaign import run_log
from suite.campaign.state import Campaign
from suite.errors import CampaignError, StoreError
from suite.files.input_file import open_at_once
from suite.files.json_file import read_json, replace_json
from suite.records import store
from suite.records.folders import ALONE, CAMPAIGN_FILE, CASES, TWINS, json_files
from suite.records.validation import OLDER
from suite.schema.rank_protocol import recorded
from suite.schema.record import SCHEMA_VERSION, Case, CaseResult
from suite.statistics.stopping_rule import Rule
from suite.statistics.twins import is_alone, is_twin

MIN_FREE_GB: Final = 0.5  # a round of 8 ranks needs far less, with its library's logs and checkpoints
RULE: Final = ("rounds", "precision", "max_rounds")  # may differ between commands
FORMAT: Final = "schema_version"  # of the records in the folder
SPELLED: Final = "matrix"  # the user's spelling; not compared, because one file has many
MATRIX: Final = "matrix_sha256"  # hash of the cases; means nothing to a user
# These also change the hash, and users know them.
IN_MATRIX: Final = ("seed", "a_a", "device", "stack", "assets", "with_packages")
OF_CODE: Final = ("code_sha256", "git_commit", "git_dirty")
# A file may contain values of any size.
_SHOWN: Final = reprlib.Repr(maxlevel=3, maxlist=64, maxstring=200, maxother=200)


@dataclass(frozen=True, kw_only=True)
class Folder:
    """Paths of one campaign."""

    root: Path

    def run_dir(self, case: Case, round_index: int) -> Path:
        return self.root / "raw" / case.case_id / f"r{round_index}"

    def record_path(self, case: Case, round_index: int) -> Path:
        return self.run_dir(case, round_index) / "record.json"

    def case_path(self, case: Case) -> Path:
        kind = TWINS if is_twin(case) else ALONE if is_alone(case) else CASES
        return self.root / kind / f"{case.case_id}.json"

    def stored(self) -> list[CaseResult]:
        """Every stored case, twin and copy, from all commands. Raises StoreError as ``store.read_case`` does."""
        return [store.read_case(path) for kind in (CASES, TWINS, ALONE) for path in json_files(self.root / kind)]

    def is_finished(self, case: Case, round_index: int) -> bool:
        return self.record_path(case, round_index).exists()

    def finished(self, case: Case) -> list[int]:
        """The indices of all finished rounds of a case, from all commands, without attempts that were set aside."""
        names = (path.parent.name for path in self.run_dir(case, 0).parent.glob("r*/record.json"))
        return sorted(int(number) for name in names if (number := name.removeprefix("r")).isdecimal())

    def require_space(self) -> None:
        """Raise CampaignError for too little space before a round starts, so that it is not lost at its end."""
        free_gb = shutil.disk_usage(self.root).free / 1e9
        if free_gb < MIN_FREE_GB:
            raise CampaignError(
                f"The disk of {self.root} has {free_gb:.2f} GB free; a run needs {MIN_FREE_GB} GB. "
                "Free some space and run the same command again: every finished run is kept."
            )


@contextmanager
def locked_folder(root: Path) -> Iterator[Folder]:
    """Lock the folder for this process; create it if it is missing.

    Raises:
        CampaignError: another process uses it, its campaign is unknown, it cannot be written or locked, or its disk
            becomes full.
    """
    require_identity(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = open(root / ".lock", "w", opener=open_at_once)  # noqa: SIM115  (closed below)
    except OSError as error:
        raise CampaignError(
            f"The results folder {root} cannot be written: {error.strerror}. Choose another with --out."
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise CampaignError(
                f"Another labscale process is using {root}. Wait for it to end, or choose another folder with --out."
            ) from error
        except OSError as error:  # Lustre and NFS may be mounted without locks
            raise CampaignError(
                f"The results folder {root} cannot be locked: {error.strerror}. Its file system has to allow flock;"
                " choose a folder on one that does with --out."
            ) from error
        with _disk_errors(root):
            yield Folder(root=root)


@contextmanager
def _disk_errors(root: Path) -> Iterator[None]:
    """Turn the error of a full disk into one that says what is kept and what to do.

    Raises:
        CampaignError: the disk is full.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise CampaignError(
            f"The disk of {root} is full ({error}). Free some space and run the same command again: "
            "every finished run is kept, and only the one in progress is repeated."
        ) from error


def require_identity(root: Path) -> None:
    """Refuse a folder with results but without ``campaign.json``, before anything is written there.

    A campaign writes that file before its first round, so such results were published or copied in part.

    Raises:
        CampaignError: there are such results, or the folder is unreadable.
    """
    path = root / CAMPAIGN_FILE
    try:
        result = None if path.exists() else _result_of_bench(root)
        if result is None or path.exists():  # checked again: a command that started meanwhile wrote both
            return
    except OSError as error:
        raise CampaignError(
            f"The results folder {root} cannot be read: {error.strerror}. Check its permissions, or choose another with"
            " --out."
        ) from error
    raise CampaignError(
        f"{root} has results ({result.relative_to(root)}) but no {CAMPAIGN_FILE}, which names their machine and "
        "options. They are a published set or a partial copy. They must not be mixed with others, and nothing was "
        f"written. Choose another folder with --out, or put their {CAMPAIGN_FILE} back to continue them."
    )


def _result_of_bench(root: Path) -> Path | None:
    """A finished round or stored case that ``suite.campaign.record_round`` did not write; None if there is none."""
    paths = (*(root / "cases").rglob("*.json"), *(root / "raw").rglob("record.json"))
    return next((path for path in sorted(paths) if not _is_by_hand(path)), None)


def _is_by_hand(path: Path) -> bool:
    """Whether ``suite.campaign.record_round`` wrote this file, for a round on several nodes without ``bench``.

    Such rounds share the folder with those that ``bench`` runs of the same matrix, and may end before it starts.
    """
    try:
        records = [store.read_record(path)] if path.name == "record.json" else store.read_case(path).rounds
    except StoreError:
        return False  # its origin is unknown
    # bench stores the command of each round that it starts, and "skipped" for one that cannot run here.
    return all(record.case.nnodes > 1 and not record.argv and record.outcome != "skipped" for record in records)


def drop_checkpoints(folder: Path) -> None:
    """Delete the libraries' model files, 30 MB or more per round; the record has a hash of the trained parameters."""
    for pattern in ("*.pt", "*.pth"):
        for path in folder.rglob(pattern):
            path.unlink()


@with_config(ConfigDict(extra="allow", strict=True, allow_inf_nan=False))
class _Stored(TypedDict, total=False):
    """The fields that are computed with; all others are only compared."""

    rounds: Annotated[int, Field(ge=1)] | None
    precision: Annotated[float, Field(gt=0, lt=1)] | None
    max_rounds: Annotated[int, Field(ge=1)] | None


def read_identity(path: Path) -> dict[str, Any]:
    """Read a ``campaign.json``. Raises CampaignError if it cannot be read."""
    advice = (
        f"Its runs are kept: store the finished ones with `nox -s store -- {shlex.quote(str(path.parent))}`, and "
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
        MATRIX: hashlib.sha256("\n".join(map(repr, whole)).encode()).hexdigest(),
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
    with locked_folder(root) as folder:
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
    names = [name for name in sorted({*stored, *wanted} - {*RULE, SPELLED}) if stored.get(name) != wanted.get(name)]
    if FORMAT in names:
        names = [FORMAT]
    elif set(names) & set(IN_MATRIX):  # the hash changes with any of these, so it adds nothing to them
        names = [name for name in names if name != MATRIX]
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
    if name != MATRIX:
        why = ", since labscale's own code changed; go back to that state to continue it" if name in OF_CODE else ""
        return f"{name}: there {there}, now {now}{why}"
    return (
        f"configurations: there from the matrix {stored.get(SPELLED)!r}, now from {wanted.get(SPELLED)!r}, and they "
        "differ: the matrix is another or was edited, --stack differs, or labscale has another version"
    )


def stored_rule(identity: Mapping[str, Any]) -> Rule:
    """The rule in a ``campaign.json``. Without ``rounds`` it counts as 0."""
    rounds, precision = identity.get("rounds") or 0, identity.get("precision")
    return Rule(rounds=rounds, precision=precision, max_rounds=identity.get("max_rounds") or rounds)
