"""What the rounds of a set store of their work besides their times. Pure."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from suite.files.wording import counted, joined
from suite.schema.record import CaseResult, RunRecord

EVIDENCE: Final[Mapping[str, Callable[[RunRecord], bool]]] = {
    "a fingerprint of the work": lambda record: bool(record.workload),
    "checks of it after training": lambda record: all(rank.validity for rank in record.ranks),
    "power and memory": lambda record: record.telemetry is not None,
    "what env_check found": lambda record: bool(record.environment.checks),
}


def missing(results: Iterable[CaseResult]) -> str:
    """Return sentences on the evidence that completed rounds lack; empty if they lack none."""
    records = [record for result in results for record in result.completed]
    lacking = {what: sum(not has(record) for record in records) for what, has in EVIDENCE.items()}
    reasons = []
    for number in sorted(set(lacking.values()) - {0}, reverse=True):
        listed = joined([what for what, count in lacking.items() if count == number])
        reasons.append(f"{number} of {counted(len(records), 'round')} did not store {listed}.")
    return " ".join(reasons)
