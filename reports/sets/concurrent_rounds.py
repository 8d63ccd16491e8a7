"""How many rounds ran while other cases ran on the same host, which may slow all of them. Pure.

A record says how many rounds of its own campaign ran beside it. Campaigns that were started side by side know nothing
of each other, so what they did to each other is read from when their rounds ran and where.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from suite.files.wording import counted
from suite.schema.record import CaseResult, RunRecord


@dataclass(frozen=True, kw_only=True)
class _Span:
    """When a round ran, and where. ``owner`` is the campaign that it is of."""

    owner: int
    host: str
    began_s: float
    ended_s: float


def with_other_campaigns(campaigns: Sequence[Sequence[CaseResult]]) -> tuple[tuple[CaseResult, ...], ...]:
    """The same results; ``neighbours`` of every round has those of other campaigns on its host too.

    A round without a time or a label of its host stays as it is. So does one that no other campaign ran beside, whose
    own may not be known.
    """
    spans: dict[str, list[_Span]] = {}
    for owner, results in enumerate(campaigns):
        for record in (record for result in results for record in result.rounds):
            if (span := _span(record, owner)) is not None:
                spans.setdefault(span.host, []).append(span)
    return tuple(
        tuple(
            replace(result, rounds=tuple(_with_others(record, owner, spans) for record in result.rounds))
            for result in results
        )
        for owner, results in enumerate(campaigns)
    )


@dataclass(frozen=True, kw_only=True)
class Beside:
    """How many rounds say whether others ran beside them on their host, in how many some did, and the most of them."""

    known: int
    beside: int
    most: int | None  # None: none of them is known to have had any


def rounds_beside(records: Sequence[RunRecord]) -> Beside:
    known = [record.neighbours for record in records if record.neighbours is not None]
    beside = [number for number in known if number]
    return Beside(known=len(known), beside=len(beside), most=max(beside, default=None))


def neighbours_sentence(records: Sequence[RunRecord]) -> str:
    """How many of ``records`` had neighbours, how many at the most, and of how many it is not known."""
    if not records:
        return "No round completed."
    found = rounds_beside(records)
    if not found.known:
        return (
            f"Of {counted(len(records), 'round')} it is not known whether others ran beside, as the records do not say."
        )
    said = f"{found.beside} of {counted(len(records), 'round')} ran beside other cases on their host"
    if found.beside:
        said += f", with at most {found.most} of them at a time"
    if found.known < len(records):
        said += f"; of {len(records) - found.known} it is not known, as the records do not say"
    return f"{said}."


def _with_others(record: RunRecord, owner: int, spans: Mapping[str, Sequence[_Span]]) -> RunRecord:
    own = _span(record, owner)
    if own is None:
        return record
    beside = [
        span
        for span in spans[own.host]
        if span.owner != owner and span.began_s < own.ended_s and own.began_s < span.ended_s
    ]
    # The most at a time run at a moment when one of them has just begun, or when the round itself has.
    moments = [max(span.began_s, own.began_s) for span in beside]
    most = max((sum(span.began_s <= moment < span.ended_s for span in beside) for moment in moments), default=0)
    return replace(record, neighbours=(record.neighbours or 0) + most) if most else record


def _span(record: RunRecord, owner: int) -> _Span | None:
    host = record.environment.host_label
    if not host or record.started_utc is None or not record.wall_time_s:
        return None
    began_s = datetime.fromisoformat(record.started_utc).timestamp()
    return _Span(owner=owner, host=host, began_s=began_s, ended_s=began_s + record.wall_time_s)
