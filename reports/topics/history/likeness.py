"""What two results of a case must have in common before their times are compared: work, hardware, versions. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from suite.schema.record import CaseResult, RunRecord

# Limits of the suite, not of the work.
_NOT_OF_THE_CASE: Final = frozenset({"case_id", "timeout_s", "hang_timeout_s"})
ENVIRONMENT_IDENTITY: Final = (
    "cpu_model", "num_cpus", "os", "kernel", "driver_version", "cuda_driver_version", "suite_version",
    "worker_pins_sha256", "worker_packages", "asset_sha256",
)  # fmt: skip
# Said by the case, or by gpu_names, already; or places on a host, which its GPUs do not share.
_NOT_OF_THE_SETTINGS: Final = frozenset({"seed", "num_envs", "device", "gpu_name", "gpu_numa_node", "cores_numa_nodes"})
# Compared where both sides say it: one rank has none, and older results do not say.
_WHERE_KNOWN: Final = frozenset(
    {
        "interconnect", "settings.cuda_graph", "settings.cuda_memory_pool_supported",
        "settings.cuda_memory_pool_enabled", "settings.cuda_memory_pool_kept_bytes", "settings.cuda_driver_version",
        "settings.torch_allocator_backend", "settings.torch_allocator_conf",
    }
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Difference:
    """``before`` and ``after`` as they are shown; several values are those of different rounds."""

    name: str
    before: str
    after: str


def differences(before: CaseResult, after: CaseResult) -> tuple[Difference, ...]:
    """What makes two results of one case unlike, sorted by name.

    Only completed rounds count. Where the rounds of one side differ among themselves, that is a difference too: their
    mean is a mixture.
    """
    old, new = identity(before), identity(after)
    if not (before.completed and after.completed):  # a case that never ran does not say where it would have
        names = {item.name for item in fields(before.case)}
        old, new = ({name: each[name] for name in each.keys() & names} for each in (old, new))
    elif not (_has_fingerprint(before) and _has_fingerprint(after)):  # in one difference, not one for each setting
        old, new = (_without_fingerprint(each, result) for each, result in ((old, before), (new, after)))
    return tuple(
        Difference(name=name, before=_said(old.get(name, ())), after=_said(new.get(name, ())))
        for name in sorted((old.keys() | new.keys()) - (_WHERE_KNOWN - (old.keys() & new.keys())))
        if old.get(name) != new.get(name) or len(old.get(name, ())) > 1
    )


def _has_fingerprint(result: CaseResult) -> bool:
    return all(record.workload for record in result.completed)


def _without_fingerprint(found: Mapping[str, tuple[str, ...]], result: CaseResult) -> Mapping[str, tuple[str, ...]]:
    """``found`` with one value for all of its ``workload.*``: results of old versions of labscale have none."""
    whole = {
        f"a fingerprint of {len(record.workload)} settings" if record.workload else "no fingerprint stored"
        for record in result.completed
    }
    rest = {name: value for name, value in found.items() if not name.startswith("workload.")}
    return rest | {"workload": tuple(sorted(whole))}


def identity(result: CaseResult) -> Mapping[str, tuple[str, ...]]:
    """Name -> its distinct values over the completed rounds, as they are shown."""
    case = result.case
    names = [item.name for item in fields(case) if item.name not in _NOT_OF_THE_CASE]
    found: dict[str, tuple[str, ...]] = {name: (repr(getattr(case, name)),) for name in names}
    per_round = [_round_identity(record) for record in result.completed]
    for name in {name for each in per_round for name in each}:
        values = {each.get(name, "not set") for each in per_round if name in each or name not in _WHERE_KNOWN}
        found[name] = tuple(sorted(values))
    interconnects = {record.transport.interconnect for record in result.completed if record.transport} - {None}
    if interconnects:
        found["interconnect"] = tuple(sorted(map(repr, interconnects)))
    return found


def _round_identity(record: RunRecord) -> dict[str, str]:
    where = record.environment
    names = sorted({gpu.name for gpu in where.gpus})
    settings = record.ranks[0].settings if record.ranks else {}
    return {
        **{name: repr(getattr(where, name)) for name in ENVIRONMENT_IDENTITY},
        "gpu_names": ", ".join(names) or "none",
        "image_digest": repr(record.image_digest),
        **{
            name if name.startswith("versions.") else f"settings.{name}": repr(value)
            for name, value in settings.items()
            if name not in _NOT_OF_THE_SETTINGS and not (name.startswith("versions.") and value is None)
        },
        **{f"workload.{name}": repr(value) for name, value in (record.workload or {}).items()},
    }


def _said(values: tuple[str, ...]) -> str:
    return " or ".join(values) or "not set"
