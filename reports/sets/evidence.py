"""What the rounds of a set store of their work besides their times. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from suite.files.wording import counted
from suite.schema.record import CaseResult, RunRecord

EVIDENCE: Final[Mapping[str, Callable[[RunRecord], bool]]] = {
    "a fingerprint of the work": lambda record: bool(record.workload),
    "checks of it after training": lambda record: all(rank.validity for rank in record.ranks),
    "power and memory": lambda record: record.telemetry is not None,
    "what env_check found": lambda record: bool(record.environment.checks),
}


def lacking(results: Iterable[CaseResult]) -> Counter[str]:
    """Return how many completed rounds do not store each kind of evidence."""
    records = [record for result in results for record in result.completed]
    return Counter({what: sum(not has(record) for record in records) for what, has in EVIDENCE.items()})


def missing(results: Sequence[CaseResult]) -> str:
    """Return sentences on the evidence that completed rounds lack; empty if they lack none."""
    rounds, missing_evidence = sum(len(result.completed) for result in results), lacking(results)
    reasons = []
    for number in sorted(set(missing_evidence.values()) - {0}, reverse=True):
        *others, last = (what for what, count in missing_evidence.items() if count == number)
        listed = f"{', '.join(others)} and {last}" if others else last
        reasons.append(f"{number} of {counted(rounds, 'round')} did not store {listed}.")
    return " ".join(reasons)
