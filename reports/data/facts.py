"""What must be equal between two runs that are compared: what was run, on what, and with which software. Pure."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Final

from suite.schema.record import Case, CaseResult, RunRecord

_NAMES_AND_LIMITS: Final = frozenset({"case_id", "timeout_s", "hang_timeout_s"})
_PACKAGES: Final = frozenset({"division", "with_packages"})  # that were asked for: which ones ran is a fact
_NOT_OF_AN_ITERATION: Final = frozenset({"series", "scaling", "seed", "seed_per_round", "iterations"})
OF_THE_MACHINE: Final = (
    "cpu_model", "num_cpus", "os", "kernel", "driver_version", "cuda_driver_version", "suite_version",
    "worker_pins_sha256", "worker_packages",
)  # fmt: skip
NOT_STATED: Final = "not stated"
# What the work or the GPUs say already, and places on a host, which its GPUs do not share.
_NOT_OF_THE_SETTINGS: Final = frozenset({"seed", "num_envs", "device", "gpu_name", "gpu_numa_node", "cores_numa_nodes"})

type Facts = Mapping[str, tuple[str, ...]]  # name -> its different values, sorted


def work_of(case: Case) -> Mapping[str, object]:
    """Return what a configuration does, whatever its packages."""
    return _without(case, _NAMES_AND_LIMITS | _PACKAGES)


def iteration_of(case: Case) -> str:
    """Return what an iteration does: task, library, stack, sizes, GPUs, minibatches, settings, packages."""
    return repr(_without(case, _NAMES_AND_LIMITS | _NOT_OF_AN_ITERATION))


def _without(case: Case, names: Collection[str]) -> Mapping[str, object]:
    return {item.name: getattr(case, item.name) for item in fields(case) if item.name not in names}


def facts_of(result: CaseResult) -> Facts:
    """Return the facts of the runs of a configuration. A run that did not complete states its work alone."""
    values: dict[str, list[str]] = {}
    for record in result.rounds:
        for name, value in _facts(record):
            values.setdefault(name, []).append(str(value))
    for own in values.values():
        if len(own) < len(result.completed):
            own.append(NOT_STATED)
    return {name: tuple(sorted(set(own))) for name, own in values.items()}


def _facts(record: RunRecord) -> Iterator[tuple[str, object]]:
    """Yield every fact that is known."""
    yield from work_of(record.case).items()
    if record.counts:
        yield from ((name, value) for name, value in _of_run(record) if value is not None)


def _of_run(record: RunRecord) -> Iterator[tuple[str, object]]:
    for name in OF_THE_MACHINE:
        yield name, getattr(record.environment, name)
    yield "asset_sha256", record.environment.asset_sha256
    yield "gpu_names", ", ".join(sorted({gpu.name for gpu in record.environment.gpus}))
    yield "image_digest", record.image_digest
    yield "interconnect", record.transport.interconnect if record.transport else None
    for name, value in (record.ranks[0].settings if record.ranks else {}).items():
        if name not in _NOT_OF_THE_SETTINGS:
            yield name if name.startswith("versions.") else f"settings.{name}", value
    for name, value in (record.workload or {}).items():
        yield f"workload.{name}", value
