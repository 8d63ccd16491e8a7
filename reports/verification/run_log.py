"""``runs.log`` of a set, in which `bench` wrote a line as each run ended: is every stored run in it, as it ended.

A line has the hash of the line before. Whoever leaves a run out, exchanges one or moves one has to write all later
lines anew, and then the last hash is no longer the one that was witnessed.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Final

from reports.verification.finding import OR_LIST, Finding, Json, as_far_as_possible, differing
from reports.verification.regular_file import read_bytes
from reports.verification.samples.stored import StoredSet

RUN_LOG: Final = "runs.log"
FIRST: Final = "0" * 64  # what the first line has in place of a hash
_KEPT: Final = ("run", "outcome", "started_utc", "wall_time_s", "readings")
_LOG_IT: Final = "Run `nox -s store` on the campaign's folder, which appends it as late; or take the run out."
_STORE_IT: Final = "Store the run with the others: none is left out of what is published."


def check_run_log(one: StoredSet) -> Iterator[Finding]:
    """Check the log of a set. Sets from before there was a log have none."""
    path = one.folder / RUN_LOG
    if path.is_file():
        where = RUN_LOG if one.name == "." else f"{one.name}/{RUN_LOG}"
        yield from as_far_as_possible(where, _check(where, read_bytes(path), one))


def _check(where: str, content: bytes, one: StoredSet) -> Iterator[Finding]:
    before, logged = FIRST, dict[str, Json]()
    for number, text in enumerate(content.splitlines(keepends=True), start=1):
        line = json.loads(text)
        yield from differing(where, f"line {number}: the hash of the line before", line["before"], before)
        before = _sha256(text)
        earlier = logged.get(line["run"])
        if earlier and earlier["outcome"] == "completed" and earlier["run_sha256"] != line["run_sha256"]:
            what, expected = f"line {number}: {line['run']}", "not: it had completed"
            yield Finding(where=where, what=what, got="run again", expected=expected, next_step=OR_LIST)
        logged[line["run"]] = line
    stored = {
        f"{case.case_id}/r{record['round']}": (case.case_id, record)
        for case in one.cases
        for record in case.rounds
        if record["outcome"] != "skipped"  # it never ran
    }
    for run in sorted(stored.keys() - logged.keys()):
        yield Finding(where=where, what=run, got="stored without a line", expected="one", next_step=_LOG_IT)
    for run in sorted(logged.keys() - stored.keys()):
        yield Finding(where=where, what=run, got="not stored", expected="stored", next_step=_STORE_IT)
    for run in sorted(stored.keys() & logged.keys()):
        line, (case_id, record) = logged[run], stored[run]
        yield from differing(where, f"{run}: its outcome", record["outcome"], line["outcome"])
        yield from differing(where, f"{run}: the hash of its samples", _of_run(case_id, record), line["run_sha256"])


def _of_run(case_id: str, record: Json) -> str:
    """Return the hash of samples, readings, outcome and times, as `bench` wrote it when the run ended."""
    content = {name: record[name] for name in _KEPT}
    content |= {"configuration_id": case_id, "samples": [rank["samples"] for rank in record["ranks"]]}
    return _sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode())


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
