"""When runs ran: ``runs.log`` of a set, and whether each run is younger than the commit that it names.

`bench` wrote a line to the log as each run ended, with the hash of the line before. Whoever leaves a run out, exchanges
one or moves one has to write all later lines anew, and then the last hash is no longer the one that was witnessed.
"""

import hashlib
import json
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reports.verification.finding import OR_LIST, Json, Place
from reports.verification.hashes import RUN_LOG, read_bytes
from reports.verification.runs import Run

FIRST: Final = "0" * 64  # what the first line has in place of a hash
_KEPT: Final = ("run", "outcome", "started_utc", "wall_time_s", "readings")
_LOG_IT: Final = "Run `nox -s store` on the campaign's folder, which appends it as late; or take the run out."
_STORE_IT: Final = "Store the run with the others: none is left out of what is published."
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def check_run_log(place: Place, folder: Path, runs: Sequence[Run]) -> None:
    """Check the log of a set against its runs. Sets from before there was a log have none."""
    if not (folder / RUN_LOG).is_file():
        return
    before, logged = FIRST, dict[str, Json]()
    for number, text in enumerate(read_bytes(folder / RUN_LOG).splitlines(keepends=True), start=1):
        line = json.loads(text)
        place.same(f"line {number}: the hash of the line before", line["before"], before)
        before, earlier = hashlib.sha256(text).hexdigest(), logged.get(line["run"])
        if earlier and earlier["outcome"] == "completed" and earlier["run_sha256"] != line["run_sha256"]:
            place.fault(f"line {number}: {line['run']}", "run again", "not: it had completed", OR_LIST)
        logged[line["run"]] = line
    stored = {f"{run.case_id}/r{run.number}": run for run in runs if run.outcome != "skipped"}
    for name in sorted(stored.keys() - logged):
        place.fault(name, "stored without a line", "one", _LOG_IT)
    for name in sorted(logged.keys() - stored):
        place.fault(name, "not stored", "stored", _STORE_IT)
    for name in sorted(stored.keys() & logged):
        place.same(f"{name}: its outcome", stored[name].record["outcome"], logged[name]["outcome"])
        place.same(f"{name}: the hash of its samples", _sha256_of(stored[name]), logged[name]["run_sha256"])


def _sha256_of(run: Run) -> str:
    """Return the hash of samples, readings, outcome and times, as `bench` wrote it when the run ended."""
    content = {name: run.record[name] for name in _KEPT}
    content |= {"configuration_id": run.case_id, "samples": [rank["samples"] for rank in run.ranks]}
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def check_commits(place: Place, version: Path, runs: Sequence[Run]) -> None:
    """Check each commit once, by git, unless the folder is outside of labscale's repository or in a shallow copy."""
    first: dict[str, Run] = {}
    for run in sorted(runs, key=lambda run: run.began_s):
        first.setdefault(str(run.machine["git_commit"]), run)
    named = [commit for commit in first if _COMMIT.fullmatch(commit)]
    arguments = ["rev-list", "--no-walk=unsorted", "--ignore-missing", "--timestamp", "--stdin"]
    try:
        is_whole = _git(version, ["rev-parse", "--is-shallow-repository"]).strip() == "false"
        lines = _git(version, arguments, "".join(f"{commit}\n" for commit in named)).splitlines() if is_whole else []
    except (OSError, subprocess.SubprocessError):
        return
    times_s = {commit: float(time_s) for time_s, commit in map(str.split, lines)}
    for commit in named if times_s else ():
        name, began_s = first[commit].name, first[commit].began_s
        if commit not in times_s:
            got = f"{commit}, which the history does not have"
            place.fault(f"{name}: its commit", got, "a commit of labscale", OR_LIST)
        elif began_s < times_s[commit]:
            place.fault(
                f"{name}: its start", f"{times_s[commit] - began_s:.0f} s before its commit {commit}", "after it"
            )


def _git(folder: Path, arguments: Sequence[str], text: str = "") -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=True).stdout
