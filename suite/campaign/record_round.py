"""Write the record of a round that ``bench`` did not start: ``python -m suite.campaign.record_round RUN_DIR``.

It runs on the head node of the round. The record describes that machine. The case is stored with its last round.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from os import environ
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from suite.campaign import cases
from suite.campaign.folder import Folder
from suite.errors import LabscaleError, StoreError
from suite.external.machine import capture
from suite.files.input_file import read_input
from suite.files.json_file import STORED, explained
from suite.files.wording import counted, listed
from suite.install.pins import sha256
from suite.launch.images.worker import image_digest_of
from suite.launch.manifests import TOLD_TO_STOP
from suite.records import store
from suite.records.collect import collect
from suite.schema.rank_protocol import CONFIGURATION_FILE, EndedBy, LaunchResult
from suite.schema.record import Case, CaseResult, RunRecord

TIMED_OUT: Final = 124  # timeout(1)'s own exit code
MOST_RANKS: Final = 1_000_000  # files of each are searched; a damaged configuration may have any number
# A tuple passes its configuration on to a plain dataclass, which has none of its own.
_CONFIGURATION: Final = TypeAdapter(tuple[Case], config=STORED)


def record(
    run_dir: Path,
    *,
    rounds: int,
    exit_code: int,
    started_unix_s: float,
    host_label: str | None = None,
    asset_root: Path | None = None,
) -> RunRecord:
    """Collect and write the round in ``OUT/raw/<case>/r<round>``; store the case with the last of its ``rounds``.

    Raises:
        StoreError: the directory is not that of a round, or its round is finished.
        UsageError: the environment of this pod has an invalid image digest.
    """
    case, round_index, folder = _whose(run_dir)
    ended_by, why = _ended_by(run_dir, exit_code)
    result = LaunchResult(
        exit_code=exit_code,
        ended_by=ended_by,
        why=why,
        started_utc=datetime.fromtimestamp(started_unix_s, UTC).isoformat(timespec="seconds"),
        wall_time_s=time.time() - started_unix_s,
        image_digest=image_digest_of(environ),
    )
    manifest = None if asset_root is None else asset_root / "manifest.json"
    machine = capture(host_label=host_label, asset_sha256=sha256(manifest) if manifest and manifest.exists() else None)
    written = collect(run_dir, case, round_index, result, machine)
    store.write_record(written, folder.record_path(case, round_index))
    paths = [folder.record_path(case, index) for index in range(rounds)]
    if all(path.exists() for path in paths):
        because = f"{counted(rounds, 'round')} ended, as many as were asked for"
        records = tuple(store.read_record_of(case, index, path) for index, path in enumerate(paths))
        cases.write_all(folder, [CaseResult(case=case, rounds=records, ended_because=because)])
    return written


def _ended_by(run_dir: Path, exit_code: int) -> tuple[EndedBy | None, str | None]:
    """Who ended the round, and why if the case does not say it; both None if it ended by itself."""
    if exit_code == TIMED_OUT:
        return "timeout", None
    told = sorted(path.parent.name for path in run_dir.glob(f"logs/node-*/{TOLD_TO_STOP}"))
    if exit_code == 0 or not told:
        return None, None
    who = listed("node", [int(name.removeprefix("node-")) for name in told])
    return "lost", f"{who} got SIGTERM, as an evicted or deleted pod does"


def _whose(run_dir: Path) -> tuple[Case, int, Folder]:
    try:
        (case,) = _CONFIGURATION.validate_json(b"[%b]" % read_input(run_dir / CONFIGURATION_FILE))
        round_index = int(run_dir.name.removeprefix("r"))
    except (OSError, ValueError, ValidationError) as error:
        why = explained(error, skip=1) if isinstance(error, ValidationError) else error
        raise StoreError(f"{run_dir} is not the directory of a run: {why}") from error
    if not 1 <= case.num_processes <= MOST_RANKS:
        raise StoreError(f"{run_dir} is configured for {case.num_processes} processes, allowed are 1 to {MOST_RANKS}.")
    below_root = Folder(root=Path()).run_dir(case, round_index).parts
    if run_dir.parts[-len(below_root) :] != below_root:
        raise StoreError(f"{run_dir} does not end in {Path(*below_root)}, where this run belongs.")
    return case, round_index, Folder(root=run_dir.parents[len(below_root) - 1])


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="suite.campaign.record_round")
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--exit-code", type=int, required=True)
    parser.add_argument("--started-unix-s", type=float, required=True)
    parser.add_argument("--host-label", type=lambda text: text or None, metavar="TEXT", help="empty: none")
    arguments = vars(parser.parse_args(argv))
    run_dir = arguments.pop("run_dir").absolute()
    assets = environ.get("ISAACSIM_ASSET_ROOT")
    try:
        written = record(run_dir, **arguments, asset_root=Path(assets) if assets else None)
    except LabscaleError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"{written.case.case_id} run {written.round}: {written.outcome}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
