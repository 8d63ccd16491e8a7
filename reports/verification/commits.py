"""Whether runs are younger than the commits that they name, by git, where the history of labscale is at hand."""

import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from reports.verification.finding import OR_LIST, Finding
from reports.verification.samples.together import TimedRun

_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def check_commits(where: str, version: Path, runs: Sequence[TimedRun]) -> Iterator[Finding]:
    """Check each commit once, unless the folder is outside of labscale's repository or in a shallow copy of it."""
    first: dict[str, TimedRun] = {}
    for run in sorted(runs, key=lambda run: run.began_s):
        first.setdefault(str(run.record["environment"]["git_commit"]), run)
    named = {commit: run for commit, run in first.items() if _COMMIT.fullmatch(commit)}
    times_s = _times_of(version, list(named))
    for commit, run in named.items() if times_s else ():
        if commit not in times_s:
            got, expected = f"{commit}, which the history does not have", "a commit of labscale"
            yield Finding(where=where, what=f"{run.name}: its commit", got=got, expected=expected, next_step=OR_LIST)
        elif run.began_s < times_s[commit]:
            got, expected = f"{times_s[commit] - run.began_s:.0f} s before its commit {commit}", "after it"
            yield Finding(where=where, what=f"{run.name}: its start", got=got, expected=expected)


def _times_of(version: Path, commits: Sequence[str]) -> dict[str, float]:
    """Return when each commit was made that git knows; nothing without a whole history."""
    try:
        if _git(version, ["rev-parse", "--is-shallow-repository"]).strip() != "false":
            return {}
        arguments = ["rev-list", "--no-walk=unsorted", "--ignore-missing", "--timestamp", "--stdin"]
        lines = _git(version, arguments, "".join(f"{commit}\n" for commit in commits)).splitlines()
    except (OSError, subprocess.SubprocessError):
        return {}
    return {commit: float(time_s) for time_s, commit in map(str.split, lines)}


def _git(folder: Path, arguments: Sequence[str], text: str = "") -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=30, check=True).stdout
