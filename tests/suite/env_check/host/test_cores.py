"""Cores: those of this machine, and known times where a busy neighbour on the other hardware thread would be needed."""

import os
from collections.abc import Mapping

from suite.env_check.host import LOOKS, MAX_CORES, CoreFacts, judge_core_speed, spread
from suite.env_check.host import read_cores as read

FAST_S, SLOW_S = 1.0e-4, 1.9e-4


def seen(looks_s: Mapping[int, tuple[float, ...]], num_cores: int = 64) -> CoreFacts:
    return CoreFacts(num_cores=num_cores, looks_s=looks_s, message="")


def test_every_core_of_this_machine_is_looked_at_in_every_pass() -> None:
    facts = read(os.environ, has_gpu=True)
    cores = sorted(os.sched_getaffinity(0))
    assert facts.message == ""
    assert (facts.num_cores, sorted(facts.looks_s)) == (len(cores), spread(cores, MAX_CORES))
    assert {len(looks_s) for looks_s in facts.looks_s.values()} == {LOOKS // len(facts.looks_s)}
    assert facts.fastest_s > 0
    assert judge_core_speed(facts).verdict in ("ok", "warning")
    assert os.sched_getaffinity(0) == set(cores)


def test_without_a_gpu_nothing_is_timed() -> None:
    facts = read({}, has_gpu=False)
    check = judge_core_speed(facts)
    assert (check.verdict, check.found, check.fault) == ("not_checked", "no GPU waits for them", None)


def test_a_probe_that_fails_is_not_taken_for_good_cores() -> None:
    facts = read({"PYTHONHOME": "/nowhere"}, has_gpu=True)
    check = judge_core_speed(facts)
    assert check.verdict == "not_checked"
    assert check.found.startswith("the probe failed: ")


def test_alike_cores_are_fine() -> None:
    check = judge_core_speed(seen(dict.fromkeys(range(32), (FAST_S, 1.1 * FAST_S, 1.2 * FAST_S))))
    assert (check.verdict, check.fault, check.repair) == ("ok", None, None)
    assert check.found == (
        "100 µs at best for a fixed piece of Python's work; 0 of 96 looks at 32 of 64 cores over 1.3 times that"
    )


def test_cores_that_are_slow_for_a_while_are_a_warning() -> None:
    looks_s = {core: (FAST_S, SLOW_S if core % 2 else FAST_S) for core in range(8)}
    check = judge_core_speed(seen(looks_s, num_cores=8))
    assert (check.verdict, check.fault) == ("warning", "cores_slowed")
    assert "4 of 16 looks at 8 of 8 cores" in check.found
    assert check.repair is not None
    assert "ask for whole cores" in check.repair
    assert check.evidence.slowed == {1: 1, 3: 1, 5: 1, 7: 1}


def test_slower_cores_of_a_laptop_are_no_neighbours() -> None:
    """Its efficiency cores; no virtual machine's provider has to do with them."""
    looks_s = dict.fromkeys(range(12), (FAST_S,) * 4) | dict.fromkeys(range(12, 14), (SLOW_S,) * 4)
    check = judge_core_speed(seen(looks_s, num_cores=14))
    assert (check.verdict, check.fault) == ("warning", "cores_differ")
    assert check.found.endswith("8 of 56 looks at 14 of 14 cores over 1.3 times that, cores 12, 13 at every look")
    assert "taskset --cpu-list" in (check.repair or "")
    spells = dict.fromkeys(range(4), (FAST_S, SLOW_S, FAST_S, SLOW_S))
    assert judge_core_speed(seen(looks_s | spells, num_cores=14)).fault == "cores_slowed"


def test_one_slow_look_in_many_is_nothing() -> None:
    looks_s = dict.fromkeys(range(31), (FAST_S,) * 4) | {31: (FAST_S, SLOW_S, FAST_S, FAST_S)}
    assert judge_core_speed(seen(looks_s)).verdict == "ok"


def test_many_cores_are_sampled_evenly() -> None:
    assert spread(range(128), 32) == list(range(0, 128, 4))
    assert spread([0, 2, 5], 32) == [0, 2, 5]
    assert len(set(spread(range(33), 32))) == 32
