"""How many rounds ran beside a round on its host: those of its own set, which it says, and those of other sets."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reports.verification.finding import Json
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

type Place = tuple[str | None, str]  # who measured, and the label that they gave to the host


@dataclass(frozen=True, kw_only=True)
class _Span:
    owner: str  # the set
    place: Place
    began_s: float
    ended_s: float


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """Spans of all rounds of a version whose time and host are known, by host."""

    version: StoredVersion
    spans: dict[Place, list[_Span]]

    def of(self, one: StoredSet, record: Json) -> int | None:
        """Return the most rounds at a time beside one; None where no other set's did and the record does not say."""
        known: int | None = record.get("neighbours")
        own = _span(self.version, one, record)
        others = [] if own is None else [span for span in self.spans[own.place] if _is_beside(span, own)]
        # The most at a time ran at a moment when one of them or the round itself had just begun.
        moments = [max(span.began_s, own.began_s) for span in others if own]
        most = max((_at(moment, others) for moment in moments), default=0)
        return (known or 0) + most if most else known


def neighbours_in(version: StoredVersion) -> Neighbours:
    spans: dict[Place, list[_Span]] = {}
    for one in version.sets:
        for record in (record for stored in one.of_report for record in stored.rounds):
            if span := _span(version, one, record):
                spans.setdefault(span.place, []).append(span)
    return Neighbours(version=version, spans=spans)


def _is_beside(span: _Span, own: _Span) -> bool:
    return span.owner != own.owner and span.began_s < own.ended_s and own.began_s < span.ended_s


def _at(moment_s: float, spans: Sequence[_Span]) -> int:
    return sum(span.began_s <= moment_s < span.ended_s for span in spans)


def _span(version: StoredVersion, one: StoredSet, record: Json) -> _Span | None:
    host, began, wall_s = record["environment"]["host_label"], record["started_utc"], record["wall_time_s"]
    if not host or began is None or not wall_s:
        return None
    began_s = datetime.fromisoformat(began).timestamp()
    place = (version.whose(one), host)
    return _Span(owner=one.folder.name, place=place, began_s=began_s, ended_s=began_s + wall_s)
