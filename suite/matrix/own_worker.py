"""Which worker a case needs: that of its stack, or an environment of its own."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from suite.schema.record import COLD_SUFFIX, Case

# RL library or workload -> name of its file in containers/pins, without .txt. The file is for the stack kitless alone,
# and it is complete: it is installed instead of the stack's.
PINS_OF: Final[dict[str, str]] = {"skrl_jax": "skrl-jax", "torchrl": "torchrl", "lerobot": "lerobot"}
PINS: Final = Path("containers/pins")
LONGEST: Final = 100  # characters of a package with its version
LONGEST_VARIANT: Final = 64  # characters; it is a part of file names


@dataclass(frozen=True, kw_only=True)
class OwnWorker:
    """An environment other than that of the stack."""

    pins: str | None = None  # name of its file in containers/pins, without .txt; None: that of the stack
    packages: tuple[str, ...] = ()  # ``name==version``, installed over these pins

    def __str__(self) -> str:
        return ", ".join((*((f"{self.pins}.txt",) if self.pins else ()), *self.packages))


def own_worker_of(case: Case) -> OwnWorker | None:
    """Return the worker that a case needs for itself; None: that of the campaign's stack serves it."""
    pins = PINS_OF.get(case.rl_library) or PINS_OF.get(case.workload)
    return OwnWorker(pins=pins, packages=case.with_packages) if pins or case.with_packages else None


def exact_package(text: str) -> str:
    """Return ``name==version`` with the name as an index spells it.

    Raises:
        ValueError: it is anything else, such as a range, an extra or an address.
    """
    try:
        requirement = Requirement(text)
        name, _, version = text.partition("==")
        package = f"{canonicalize_name(name.strip())}=={Version(version)}"
    except ValueError:  # InvalidRequirement and InvalidVersion too
        requirement, package = None, ""
    if requirement is None or len(text) > LONGEST or requirement.extras or requirement.marker or requirement.url:
        raise ValueError("should be name==version, such as newton==1.8.0")
    return package


@cache
def pinned_names() -> frozenset[str]:
    """Return the packages of every worker. A matrix chooses among their versions; another package is other code."""
    names = ("worker", "ovphysx", *PINS_OF.values())
    texts = [(Path(__file__).parents[2] / PINS / f"{name}.txt").read_text(encoding="utf-8") for name in names]
    return frozenset(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", "\n".join(texts), re.MULTILINE))


def name_of(package: str) -> str:
    """Return the name in ``name==version``."""
    return package.partition("==")[0]


def over(packages: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """Return these versions, and the others of packages that they do not have."""
    own = {name_of(package): package for package in (*others, *packages)}
    return tuple(own.values())


def variant_of(packages: Iterable[str]) -> str:
    """Name these versions in ids of cases, such as ``newton-1-8-0``."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(sorted(packages)))[:LONGEST_VARIANT]


def with_version(case: Case, package: str) -> Case:
    """Return the case with this version (``name==version``) over its own packages, under an id that names it."""
    suffix = COLD_SUFFIX if case.kernel_cache == "empty" else ""
    return replace(
        case,
        case_id=f"{case.case_id.removesuffix(suffix)}-{variant_of([package])}{suffix}",
        division="open",
        with_packages=tuple(sorted(over([package], case.with_packages))),
    )
