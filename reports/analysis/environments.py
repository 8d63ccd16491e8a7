"""Where results came from: environments, and the versions that ran in them. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from suite.files.wording import day_in_words
from suite.schema.record import CaseResult, Environment, RlLibrary, RunRecord

SHORT_HASH_LENGTH: Final = 12
PACKAGE_OF: Final[Mapping[RlLibrary, str]] = {  # whose version is that of the RL library
    "rl_games": "rl-games", "rsl_rl": "rsl-rl-lib", "skrl": "skrl", "skrl_jax": "skrl", "sb3": "stable-baselines3",
    "torchrl": "torchrl", "lerobot": "lerobot",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Place:
    """An environment that results came from, with what ran in it."""

    environment: Environment
    versions: Mapping[str, str]  # package -> version, of every rank; several versions are joined by commas
    num_rounds: int  # completed
    first_started_utc: str | None
    last_started_utc: str | None


def places(results: Sequence[CaseResult]) -> tuple[Place, ...]:
    """Every distinct environment of the results, in order of first appearance."""
    by_environment: dict[Environment, list[RunRecord]] = {}
    for result in results:
        for record in result.rounds:
            by_environment.setdefault(record.environment, []).append(record)
    return tuple(_place(environment, records) for environment, records in by_environment.items())


def _place(environment: Environment, records: Sequence[RunRecord]) -> Place:
    started = sorted(record.started_utc for record in records if record.started_utc is not None)
    versions: dict[str, set[str]] = {}
    for record in records:
        for rank in record.ranks:
            for name, value in rank.settings.items():
                if name.startswith("versions.") and value is not None:
                    versions.setdefault(name.removeprefix("versions."), set()).add(str(value))
    return Place(
        environment=environment,
        versions={name: ", ".join(sorted(found)) for name, found in sorted(versions.items())},
        num_rounds=sum(record.outcome == "completed" for record in records),
        first_started_utc=started[0] if started else None,
        last_started_utc=started[-1] if started else None,
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


def with_label(place: Place) -> str:
    """The hardware, and the label that whoever measured gave to the machine."""
    label = "" if place.environment.host_label is None else f" [{place.environment.host_label}]"
    return hardware(place.environment) + label


def with_label_and_day(place: Place) -> str:
    return ", ".join([with_label(place), *_day(place)])


def where_it_ran(place: Place) -> str:
    """A machine with GPUs by its plain name; one without them by its processor and the day."""
    if place.environment.gpus:
        return plain_name(place)
    return ", ".join([hardware(place.environment), *_day(place)])


def plain_name(place: Place) -> str:
    """What a person would call a machine on a day: ``4 x H200, 64 vCPU, 22 Nov 2026``."""
    environment = place.environment
    counts = Counter(gpu.name.removeprefix("NVIDIA ") for gpu in environment.gpus)
    parts = [f"{number} x {name}" for name, number in counts.items()]
    if environment.num_cpus:
        parts.append(f"{environment.num_cpus} vCPU")
    return ", ".join([*parts, *_day(place)]) or "an unknown machine"


def _day(place: Place) -> list[str]:
    """The day of the first start of a round; nothing where none started."""
    first = place.first_started_utc
    return [day_in_words(datetime.fromisoformat(first))] if first else []


def gpu_name(environment: Environment) -> str | None:
    """The model of the GPUs without its maker; None without a GPU."""
    return environment.gpus[0].name.removeprefix("NVIDIA ") if environment.gpus else None


def commit_of(environment: Environment) -> str | None:
    """The beginning of labscale's commit, and whether it had local changes; None if it is unknown."""
    commit = environment.git_commit and environment.git_commit[:SHORT_HASH_LENGTH]
    return f"{commit}, with local changes" if commit and environment.git_dirty else commit
