"""With which software, and how, two versions of the report were measured. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from reports.analysis.environments import PACKAGE_OF, commit_of
from reports.sets.version import Version
from reports.topics.history.over_versions import AXIS_PACKAGES
from suite.files.wording import counted, joined
from suite.schema.record import CaseResult

PACKAGES: Final[Mapping[str, str]] = {
    **AXIS_PACKAGES,
    "Warp": "warp-lang",
    "PhysX (ovphysx)": "ovphysx",
    **{name: package for name, package in PACKAGE_OF.items() if name != "skrl_jax"},  # skrl is there
    "JAX": "jax",
    "CUDA of torch": "cuda",
    "NCCL": "nccl",
    "Python": "python",
}
RELEASES: Final[Mapping[str, str]] = {
    "Isaac Lab": "https://github.com/isaac-sim/IsaacLab/releases",
    "Newton": "https://github.com/newton-physics/newton/releases",
    "torch": "https://github.com/pytorch/pytorch/releases",
    "Warp": "https://github.com/NVIDIA/warp/releases",
    "rl_games": "https://github.com/Denys88/rl_games/releases",
    "rsl_rl": "https://github.com/leggedrobotics/rsl_rl/releases",
    "skrl": "https://github.com/Toni-SM/skrl/releases",
    "JAX": "https://github.com/jax-ml/jax/releases",
    "sb3": "https://github.com/DLR-RM/stable-baselines3/releases",
    "torchrl": "https://github.com/pytorch/rl/releases",
    "lerobot": "https://github.com/huggingface/lerobot/releases",
}
MAX_COMMITS: Final = 3  # more are counted
NOT_RECORDED: Final = "not recorded"


@dataclass(frozen=True, kw_only=True)
class Condition:
    """One property of the runs of two versions, in words."""

    name: str
    before: str
    now: str

    @property
    def has_changed(self) -> bool | None:
        """None: only one version recorded it."""
        return None if NOT_RECORDED in {self.before, self.now} else self.before != self.now


def software(before: Version, now: Version) -> tuple[Condition, ...]:
    """Compare the versions of packages and of the driver. A package that neither side recorded is left out.

    Cases with other versions than the pinned ones do not count: they have a page of their own.
    """
    old, new = (_software(_with_pins(compared_results(version))) for version in (before, now))
    return _compared({name: value for name, value in old.items() if {value, new[name]} != {NOT_RECORDED}}, new)


def measurement(before: Version, now: Version) -> tuple[Condition, ...]:
    """Compare how runs were made."""
    old, new = (_measurement(compared_results(version)) for version in (before, now))
    return _compared(old, new)


def software_answer(found: Sequence[Condition]) -> str:
    """Return which software changed, in a sentence."""
    changed = [f"{each.name} ({each.before}, now {each.now})" for each in found if each.has_changed]
    return f"Other software: {', '.join(changed)}." if changed else "The software that both recorded is the same."


def _compared(old: Mapping[str, str], new: Mapping[str, str]) -> tuple[Condition, ...]:
    return tuple(Condition(name=name, before=value, now=new[name]) for name, value in old.items())


def compared_results(version: Version) -> list[CaseResult]:
    """Return what is compared of a version: what completed of the sets whose speeds are shown."""
    return [result for one in version.scaling for result in one.campaign.results if result.completed]


def _with_pins(results: Sequence[CaseResult]) -> list[CaseResult]:
    return [result for result in results if not result.case.with_packages]


def _software(results: Sequence[CaseResult]) -> dict[str, str]:
    records = [record for result in results for record in result.completed]
    settings = [rank.settings for record in records for rank in record.ranks]
    packages = {
        spoken: _distinct([each.get(f"versions.{name}") for each in settings]) for spoken, name in PACKAGES.items()
    }
    return {**packages, "NVIDIA driver": _distinct([record.environment.driver_version for record in records])}


def _measurement(results: Sequence[CaseResult]) -> dict[str, str]:
    records = [record for result in results for record in result.completed]
    in_turns = sum(record.turns is not None for record in records)
    numbers = sorted({len(result.completed) for result in results})
    commits = {commit for record in records if (commit := commit_of(record.environment))}
    return {
        "labscale": _distinct([record.environment.suite_version for record in records]),
        "Commits of labscale": _distinct(commits) if len(commits) <= MAX_COMMITS else counted(len(commits), "commit"),
        "Runs of a configuration": " to ".join(map(str, dict.fromkeys([*numbers[:1], *numbers[-1:]]))) or NOT_RECORDED,
        "Runs measured in turns with others": f"{in_turns} of {len(records)}",
    }


def _distinct(values: Iterable[object]) -> str:
    return joined(sorted({str(value) for value in values if value is not None})) or NOT_RECORDED
