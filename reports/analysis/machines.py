"""The machines of a version: what each is called, and where its results are. Pure.

Whoever measured gave a machine a label, so places of one label and one kind of GPU are one machine, on any day. Without
a label a machine is what has the same name.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reports.analysis.environments import Place, gpu_name, where_it_ran
from suite.files.wording import day_in_words
from suite.schema.record import Environment


@dataclass(frozen=True, kw_only=True)
class Found:
    """A place, in which set it is, and who measured there; None is the project itself."""

    set_name: str
    whose: str | None
    place: Place


@dataclass(frozen=True, kw_only=True)
class Machine:
    name: str  # ``4 x H200, 64 vCPU, 22 Nov 2026``; with the time of its first run where others have the same
    found: tuple[Found, ...]  # in the order of the version

    @property
    def environment(self) -> Environment:
        """The one with most GPUs: a run may see fewer than the machine has."""
        return max((each.place.environment for each in self.found), key=lambda where: len(where.gpus))

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(each.place for each in self.found)

    @property
    def model(self) -> str | None:
        return self.environment.gpus[0].name if self.environment.gpus else None

    @property
    def first_started_utc(self) -> str | None:
        return min((place.first_started_utc for place in self.places if place.first_started_utc), default=None)


def machines(found: Iterable[Found]) -> tuple[Machine, ...]:
    """Every machine, the one that ran first first; those without a known start are last."""
    alike: dict[tuple[object, ...], list[Found]] = {}
    for each in found:
        alike.setdefault(_key(each), []).append(each)
    unnamed = sorted((_unnamed(each) for each in alike.values()), key=lambda one: one.first_started_utc or "~")
    plain = [one.name for one in unnamed]
    timed = [name + _clock(one) if plain.count(name) > 1 else name for name, one in zip(plain, unnamed, strict=True)]
    counts = [timed[: place + 1].count(name) for place, name in enumerate(timed)]  # a name is of one machine
    names = [f"{name} ({count})" if count > 1 else name for name, count in zip(timed, counts, strict=True)]
    return tuple(replace(one, name=name) for one, name in zip(unnamed, names, strict=True))


def _key(each: Found) -> tuple[object, ...]:
    environment = each.place.environment
    return each.whose, environment.host_label or where_it_ran(each.place), gpu_name(environment)


def _unnamed(found: Sequence[Found]) -> Machine:
    """The machine with the name that others may have too."""
    one = Machine(name="", found=tuple(found))
    place = max(one.places, key=lambda place: len(place.environment.gpus))
    return replace(one, name=where_it_ran(replace(place, first_started_utc=one.first_started_utc)))


def machines_in_short(found: Collection[Machine]) -> str:
    """Their GPUs and the days on which they began: ``2 x H200, 4 x H200, 22 Nov 2026 to 28 Nov 2026``."""
    started = sorted((one.first_started_utc, one.name) for one in found if one.first_started_utc)
    days = [day_in_words(_in_utc(day)) for day, _ in (*started[:1], *started[-1:])]
    return ", ".join([*sorted({one.name.partition(",")[0] for one in found}), " to ".join(dict.fromkeys(days))])


def _clock(one: Machine) -> str:
    return f", {_in_utc(one.first_started_utc):%H:%M}" if one.first_started_utc else ""


def _in_utc(started_utc: str) -> datetime:
    return datetime.fromisoformat(started_utc).astimezone(UTC)
