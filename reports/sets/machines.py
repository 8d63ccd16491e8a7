"""Machines: the environments that results came from, which of them are one machine, and what each is called. Pure.

Whoever measured gave a machine a label, so places of one label and one kind of GPU are one machine, on any day. Without
a label a machine is what has the same name.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from suite.files.wording import day_in_words
from suite.schema.record import CaseResult, Environment, RunRecord


@dataclass(frozen=True, kw_only=True)
class Place:
    """An environment that results came from, with what ran in it."""

    environment: Environment
    num_rounds: int  # completed
    first_started_utc: str | None


def places(results: Sequence[CaseResult]) -> tuple[Place, ...]:
    """Every distinct environment of the results, in order of first appearance."""
    by_environment: dict[Environment, list[RunRecord]] = {}
    for result in results:
        for record in result.rounds:
            by_environment.setdefault(record.environment, []).append(record)
    return tuple(
        Place(
            environment=environment,
            num_rounds=sum(record.outcome == "completed" for record in records),
            first_started_utc=min((record.started_utc for record in records if record.started_utc), default=None),
        )
        for environment, records in by_environment.items()
    )


def hardware(environment: Environment) -> str:
    """What the work ran on, in words: GPUs if there are any, else the processor."""
    if environment.gpus:
        counts = Counter(gpu.name for gpu in environment.gpus)
        return ", ".join(f"{count} x {name}" for name, count in counts.items())
    if environment.cpu_model is None:
        return "unknown hardware"
    cores = "" if environment.num_cpus is None else f" ({environment.num_cpus} CPUs)"
    return environment.cpu_model + cores


def plain_name(place: Place) -> str:
    """What a person would call a machine on a day: ``4 x H200, 64 vCPU, 22 Nov 2026``; without GPUs its processor."""
    environment, first = place.environment, place.first_started_utc
    parts = [hardware(environment).replace("NVIDIA ", "")]
    if environment.gpus and environment.num_cpus:
        parts.append(f"{environment.num_cpus} vCPU")
    return ", ".join([*parts, *([day_in_words(datetime.fromisoformat(first))] if first else [])])


@dataclass(frozen=True, kw_only=True)
class PlaceOfSet:
    """A place, in which set it is, and who measured there; None is the project itself."""

    set_name: str
    whose: str | None
    place: Place


@dataclass(frozen=True, kw_only=True)
class Machine:
    name: str  # ``4 x H200, 64 vCPU, 22 Nov 2026``; with the time of its first run where others have the same
    of_sets: tuple[PlaceOfSet, ...]  # in the order of the version

    @property
    def environment(self) -> Environment:
        """The one with most GPUs: a run may see fewer than the machine has."""
        return max((place_of_set.place.environment for place_of_set in self.of_sets), key=lambda where: len(where.gpus))

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(place_of_set.place for place_of_set in self.of_sets)

    @property
    def model(self) -> str | None:
        return self.environment.gpus[0].name if self.environment.gpus else None

    @property
    def first_started_utc(self) -> str | None:
        return min((place.first_started_utc for place in self.places if place.first_started_utc), default=None)


def machines(of_sets: Iterable[PlaceOfSet]) -> tuple[Machine, ...]:
    """Every machine, the one that ran first first; those without a known start are last."""
    alike: dict[tuple[object, ...], list[PlaceOfSet]] = {}
    for own in of_sets:
        environment = own.place.environment
        model = environment.gpus[0].name if environment.gpus else None
        alike.setdefault((own.whose, environment.host_label or plain_name(own.place), model), []).append(own)
    unnamed = sorted(map(_unnamed, alike.values()), key=lambda machine: machine.first_started_utc or "~")
    plain = [machine.name for machine in unnamed]
    timed = [
        f"{name}, {_in_utc(begun):%H:%M}" if plain.count(name) > 1 and begun else name
        for name, begun in zip(plain, (machine.first_started_utc for machine in unnamed), strict=True)
    ]
    counts = [timed[: place + 1].count(name) for place, name in enumerate(timed)]  # a name is of one machine
    names = [f"{name} ({count})" if count > 1 else name for name, count in zip(timed, counts, strict=True)]
    return tuple(replace(machine, name=name) for machine, name in zip(unnamed, names, strict=True))


def _unnamed(of_sets: Sequence[PlaceOfSet]) -> Machine:
    """The machine with the name that others may have too."""
    machine = Machine(name="", of_sets=tuple(of_sets))
    place = max(machine.places, key=lambda place: len(place.environment.gpus))
    return replace(machine, name=plain_name(replace(place, first_started_utc=machine.first_started_utc)))


def machines_in_short(listed: Collection[Machine]) -> str:
    """Their GPUs and the days on which they began: ``2 x H200, 4 x H200, 22 Nov 2026 to 28 Nov 2026``."""
    started = sorted((machine.first_started_utc, machine.name) for machine in listed if machine.first_started_utc)
    days = [day_in_words(_in_utc(day)) for day, _ in (*started[:1], *started[-1:])]
    return ", ".join(
        [*sorted({machine.name.partition(",")[0] for machine in listed}), " to ".join(dict.fromkeys(days))]
    )


def _in_utc(started_utc: str) -> datetime:
    return datetime.fromisoformat(started_utc).astimezone(UTC)
