"""The verifier's own formulas for what was measured of a case besides its time, on numbers that a reader can follow."""

from typing import Any

import pytest

from reports.verification import formulas
from reports.verification.figures import core_probes
from reports.verification.figures.iteration_parts import mean_shares
from reports.verification.figures.starts import starts_of
from reports.verification.samples.stored import StoredCase

MARKED = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0]
EVERY = range(len(MARKED))


def rank(number: int = 0, **changed: Any) -> dict[str, Any]:
    """Iterations of 10 s: 4 s of steps, of which 1 s is physics, 2 s of inference, 3 s of learning."""
    times_s = {"iteration": 10.0, "environment_step": 4.0, "simulate": 1.0, "inference": 2.0, "learning": 3.0}
    samples: dict[str, list[float | None]] = {
        f"{name}_time_s": [time_s + (name == "iteration" and i == 0) for i in EVERY] for name, time_s in times_s.items()
    }
    samples |= {"marked": [*MARKED], "start_s": [20.0 + 10 * i for i in EVERY], **changed.pop("samples", {})}
    phases_s = {"imports_torch": 1.0, "imports": 2.0, "environment_creation": 5.0}
    known = {"rank": number, "local_rank": number, "phases_s": phases_s, "samples": samples, "kernels_compiled": None}
    return {**known, **changed}


def record(*ranks: dict[str, Any], **changed: Any) -> dict[str, Any]:
    environment = {"host_label": "H", "cpu_model": "C"}
    return {
        "round": 0, "outcome": "completed", "case": {"device": "cuda", "kernel_cache": "kept"},
        "environment": environment, "ranks": list(ranks), "profiled_ranks": [], "turns": None, **changed,
    }  # fmt: skip


def starts(*records: dict[str, Any]) -> list[bool | None]:
    stored = StoredCase(where="", case={}, rounds=list(records), ended_because=None, rule=formulas.RULE)
    return [start.is_cold for start in starts_of(stored)]


def test_parts_of_an_iteration_are_shares_of_the_marked_ones() -> None:
    assert mean_shares([record(rank())]) == pytest.approx(
        {"simulate": 0.1, "environment": 0.3, "infer": 0.2, "other": 0.1, "learn": 0.3}
    )


def test_an_all_reduce_takes_what_the_rank_that_waited_least_needs_and_the_rest_is_waiting() -> None:
    reduced = ([None if not mark else time_s for mark in MARKED] for time_s in (1.0, 2.0))
    found = mean_shares([record(*(rank(i, samples={"all_reduce_time_s": each}) for i, each in enumerate(reduced)))])
    assert [found["all_reduce"], found["waiting"]] == pytest.approx([0.1, 0.05])
    assert found["learn"] == pytest.approx(0.15)
    assert sum(found.values()) == pytest.approx(1)


def test_a_round_without_a_time_that_all_have_says_nothing() -> None:
    assert mean_shares([record(rank(samples={"environment_step_time_s": []}))]) == {}


def test_a_start_is_cold_if_kernels_were_compiled_and_else_if_it_took_long() -> None:
    long = rank(samples={"start_s": [60.0 + 10 * i for i in EVERY]})
    assert starts(record(rank(kernels_compiled=3)), record({**long, "kernels_compiled": 0})) == [True, False]
    assert starts(record(rank()), record(long)) == [False, True]
    assert starts(record(rank())) == [None]


def test_a_start_ends_with_the_first_iteration() -> None:
    stored = StoredCase(where="", case={}, rounds=[record(rank())], ended_because=None, rule=formulas.RULE)
    assert [start.total_s for start in starts_of(stored)] == [1 + 20 + 11]


def test_a_core_is_slowed_beside_the_fastest_probe_of_its_host() -> None:
    probes = [record(rank(samples={"core_probe_time_s": [None] * 6 + [probe_s, None]})) for probe_s in (1e-5, 1.4e-5)]
    fastest = core_probes.fastest_s(probes)
    assert fastest == {("H", "C"): 1e-5}
    found = core_probes.figures(probes, fastest)
    assert (found["core_looks"], found["slowed_core_looks"], found["slowed_core_share"]) == (2, 1, 0.5)
    assert found["slower_after_slowed_core"] is None
