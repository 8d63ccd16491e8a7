"""Where two workloads differ, by the names of their fingerprints. Pure."""

from collections.abc import Mapping

from suite.schema.record import Scalar


def workload_differences(one: Mapping[str, Scalar], other: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Every setting that differs, as ``name: value and value``, sorted by name; a name that is missing is said so."""
    return tuple(
        f"{name}: {_said(one, name)} and {_said(other, name)}"
        for name in sorted(one.keys() | other.keys())
        if name not in one or name not in other or one[name] != other[name]
    )


def _said(workload: Mapping[str, Scalar], name: str) -> str:
    return repr(workload[name]) if name in workload else "not set"
