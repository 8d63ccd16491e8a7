"""Which worker a case needs: that of its stack, or an environment of its own. Pure."""

from dataclasses import dataclass
from typing import Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from suite.schema.record import Case

# RL library or workload -> name of its file in containers/pins, without .txt. The file is for the stack kitless alone,
# and it is complete: it is installed instead of the stack's.
PINS_OF: Final[dict[str, str]] = {"skrl_jax": "skrl-jax", "torchrl": "torchrl"}
LONGEST: Final = 100  # characters of a package with its version


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
        found = Requirement(text)
        name, _, version = text.partition("==")
        package = f"{canonicalize_name(name.strip())}=={Version(version)}"
    except ValueError:  # InvalidRequirement and InvalidVersion too
        found, package = None, ""
    if found is None or len(text) > LONGEST or found.extras or found.marker or found.url:
        raise ValueError("should be name==version, such as newton==1.8.0")
    return package


def name_of(package: str) -> str:
    """Return the name in ``name==version``."""
    return package.partition("==")[0]
