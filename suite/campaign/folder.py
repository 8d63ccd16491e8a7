"""The folder of a campaign: its paths, its finished rounds, and the lock that excludes other processes.

ARCHITECTURE.md has the layout. A round is finished when its ``record.json`` exists; nothing finished is overwritten.
"""

import errno
import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from suite.errors import CampaignError, StoreError
from suite.files.input_file import open_at_once
from suite.records import store
from suite.records.folders import ALONE, CAMPAIGN_FILE, CASES, TWINS, json_files
from suite.schema.record import Case, CaseResult
from suite.statistics.twins import is_alone, is_twin

MIN_FREE_GB: Final = 0.5  # a round of 8 ranks needs far less, with its library's logs and checkpoints


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
        """Check for free space before a round starts, so that it is not lost at its end."""
        free_gb = shutil.disk_usage(self.root).free / 1e9
        if free_gb < MIN_FREE_GB:
            raise CampaignError(
                f"The disk of {self.root} has {free_gb:.2f} GB free; a round needs {MIN_FREE_GB} GB. "
                "Free some space and run the same command again: every finished round is kept."
            )


@contextmanager
def locked(root: Path) -> Iterator[Folder]:
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
            "every finished round is kept, and only the one in progress is repeated."
        ) from error


def require_identity(root: Path) -> None:
    """Refuse a folder with results but without ``campaign.json``, before anything is written there.

    A campaign writes that file before its first round, so such results were published or copied in part.

    Raises:
        CampaignError: there are such results, or the folder is unreadable.
    """
    path = root / CAMPAIGN_FILE
    try:
        if path.exists() or (result := _result_of_bench(root)) is None:
            return
        if path.exists():  # checked again: a command that started meanwhile wrote both
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
