"""Differences of two fingerprints."""

from suite.records.collect import workload_differences
from suite.schema.record import Scalar


def test_equal_workloads_have_no_differences() -> None:
    one: dict[str, Scalar] = {"task": "ant", "decimation": 2}
    assert workload_differences(one, dict(reversed(one.items()))) == ()


def test_every_difference_is_named_with_both_values_in_order() -> None:
    one: dict[str, Scalar] = {"z": 1, "a": "x", "only": None, "same": 1.5}
    other: dict[str, Scalar] = {"z": 2, "a": "y", "same": 1.5}
    assert workload_differences(one, other) == ("a: 'x' and 'y'", "only: None and not set", "z: 1 and 2")
