"""The version of results in git that tests look at, read once by each test process."""

from functools import cache
from pathlib import Path

from reports.result_sets import ResultSet, Version, read_version

RESULTS = Path(__file__).resolve().parents[1] / "reports" / "results" / "2026.11"
# The notes of the version as one line, so that a sentence is found wherever its lines break.
NOTES = " ".join((RESULTS / "NOTES.md").read_text(encoding="utf-8").split())


@cache
def committed_version() -> Version:
    """The whole version, with every set."""
    return read_version(RESULTS, name=RESULTS.name)


def committed_set(name: str) -> ResultSet:
    """One set of the version, by its folder's name."""
    (found,) = (one for one in committed_version().sets if one.name == name)
    return found
