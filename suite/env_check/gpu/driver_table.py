"""Reads ``drivers.toml``, the drivers and GPUs that each stack runs on, and checks this driver against it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Self

from pydantic import Field, StringConstraints, model_validator

from suite.env_check.check import Judgement, Subject
from suite.files.toml_file import NonEmptyTuple, Problem, TomlTable, Tuple, read_toml
from suite.schema.record import Stack

DRIVERS_PATH: Final = Path(__file__).with_name("drivers.toml")

type Version = Annotated[str, StringConstraints(pattern=r"^\d+(\.\d+)*$")]
type Text = Annotated[str, StringConstraints(min_length=1)]


class SourcedVersion(TomlTable):
    version: Version
    source: Text


class KnownBad(TomlTable):
    """A range of drivers with a known bug: ``from`` belongs to it, ``below`` does not."""

    first: Version = Field(alias="from")
    below: Version
    what: Text
    source: Text

    @model_validator(mode="after")
    def _a_range(self) -> Self:
        if parts(self.first) >= parts(self.below):
            raise ValueError(f"should have a 'from' older than 'below', {self.below}")
        return self


class StackDrivers(TomlTable):
    """The drivers and GPUs of one stack, or of one release of it."""

    name: Stack
    release: Version | None = None
    minimum: SourcedVersion
    validated: Tuple[SourcedVersion] = ()
    known_bad: Tuple[KnownBad] = ()
    minimum_compute_capability: SourcedVersion

    @property
    def title(self) -> str:
        return self.name if self.release is None else f"{self.name} {self.release}"


class _Document(TomlTable):
    stack: NonEmptyTuple[StackDrivers]


@dataclass(frozen=True, kw_only=True)
class DriverForStack:
    """Evidence of ``driver_for_stack``."""

    stack: str
    driver_version: str | None
    minimum: str
    minimum_source: str
    validated: tuple[str, ...]
    known_bad: str | None  # the bug of this driver, and the source
    validated_sources: tuple[str, ...]


def parts(version: str) -> tuple[int, ...]:
    """Split a version into numbers that compare: ``"580.65.06"`` gives ``(580, 65, 6)``."""
    return tuple(int(part) for part in version.split("."))


def read_drivers(path: Path = DRIVERS_PATH) -> tuple[StackDrivers, ...]:
    """Read the table. Raises MatrixError with every problem of the file."""
    file = read_toml(path)
    stacks = file.validate(_Document).stack
    titles = [entry.title for entry in stacks]
    problems = [
        Problem(location=("stack", number), message=f"{title} appears twice; give each entry its own release.")
        for number, title in enumerate(titles)
        if title in titles[:number]
    ]
    if problems:
        raise file.error(problems)
    return stacks


def drivers_for(stack: Stack, stacks: tuple[StackDrivers, ...], *, release: str | None = None) -> StackDrivers:
    """Return the stack's entry whose release ``release`` ("6.0.1") belongs to; without one, its first entry.

    Raises:
        LookupError: the table has no entry for the stack.

    """
    entries = [entry for entry in stacks if entry.name == stack]
    if not entries:
        raise LookupError(f"drivers.toml has no entry for {stack}")
    fitting = [entry for entry in entries if release and entry.release and _belongs(release, entry.release)]
    return (fitting or entries)[0]


def _belongs(version: str, branch: str) -> bool:
    return parts(version)[: len(parts(branch))] == parts(branch)


def judge_driver_for_stack(driver_version: str | None, drivers: StackDrivers) -> Judgement:
    """Compare the kernel driver's version with the versions that the stack needs."""
    bad = next((bad for bad in drivers.known_bad if driver_version and _in_range(driver_version, bad)), None)
    evidence = DriverForStack(
        stack=drivers.title,
        driver_version=driver_version,
        minimum=drivers.minimum.version,
        minimum_source=drivers.minimum.source,
        validated=tuple(entry.version for entry in drivers.validated),
        validated_sources=tuple(entry.source for entry in drivers.validated),
        known_bad=f"{bad.what} ({bad.source})" if bad else None,
    )
    validated = f", validated with {', '.join(evidence.validated)}" if evidence.validated else ""
    subject = Subject(f"{evidence.minimum} or newer for {drivers.title}{validated}", evidence)
    if driver_version is None:
        return subject.not_checked("no driver")
    best = evidence.validated[0] if evidence.validated else f"{evidence.minimum} or newer"
    install = f"nstall driver {best}, on the host if this is a container."
    found = f"driver {driver_version}"
    if bad:
        return subject.failure("driver_known_bad", f"{found}: {evidence.known_bad}", f"I{install}")
    if parts(driver_version) < parts(evidence.minimum):
        return subject.failure("driver_too_old", found, f"I{install}")
    # A newer driver is normally fine. A stack that a newer driver broke before gets a warning.
    newest = max((parts(version)[0] for version in evidence.validated), default=None)
    if newest is not None and drivers.known_bad and parts(driver_version)[0] > newest:
        return subject.warning("driver_not_validated", found, f"If it crashes, i{install}")
    return subject.ok(found)


def _in_range(version: str, bad: KnownBad) -> bool:
    return parts(bad.first) <= parts(version) < parts(bad.below)
