"""Checks whether all cores are equally fast, and stay so for a second. Cores that others share are not.

A GPU that finishes in a millisecond waits for the one thread that launches its kernels. If another machine's virtual
cores run on the other hardware threads, for example, that thread takes up to twice as long for seconds at a time.
Neither the load nor the time taken by the hypervisor shows this.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from suite.env_check.check import Judgement, Subject
from suite.env_check.probes.run import run_probe
from suite.files.wording import counted, listed
from suite.statistics.core_speed import SLOWED, WORTH_SAYING

MAX_CORES: Final = 32  # spread evenly over the usable cores
LOOKS: Final = 128  # summed over all cores, which take turns, so that each is timed over 1.5 s
TIMEOUT_S: Final = 20.0
_REPAIRS: Final = {
    "cores_slowed": (
        "See what else runs here (top); of a virtual machine's provider, ask for whole cores, with both threads. "
        "Until then rounds differ by tens of percent: give each case more of them, compare what ran in turns."
    ),
    "cores_differ": (
        "The speed of a GPU depends on the core that its process runs on. If the slow cores are efficiency cores, use "
        "only the others: taskset --cpu-list CORES python3 -m nox -s bench. Otherwise see what else runs on them (top)."
    ),
}


@dataclass(frozen=True, kw_only=True)
class CoreFacts:
    num_cores: int  # cores that this process may use
    looks_s: Mapping[int, tuple[float, ...]]  # core -> time of a fixed piece of Python work, once per pass
    message: str  # why no core was timed; empty if they were

    @property
    def fastest_s(self) -> float:
        return min(min(looks_s) for looks_s in self.looks_s.values())

    @property
    def slowed(self) -> dict[int, int]:
        """Return, for each core that was slowed, the number of its looks over ``SLOWED`` times the fastest look."""
        limit_s = SLOWED * self.fastest_s
        counts = {core: sum(look_s > limit_s for look_s in looks_s) for core, looks_s in self.looks_s.items()}
        return {core: count for core, count in counts.items() if count}

    @property
    def slower(self) -> list[int]:
        """Return the cores that were slowed at every look, such as the efficiency cores of a laptop."""
        return [core for core, count in self.slowed.items() if count == len(self.looks_s[core])]


def read(environ: Mapping[str, str], *, has_gpu: bool) -> CoreFacts:
    """Time the cores in a separate process. Call it alone: other readers would slow the cores."""
    cores = sorted(os.sched_getaffinity(0))
    if not has_gpu:
        return CoreFacts(num_cores=len(cores), looks_s={}, message="no GPU waits for them")
    chosen = spread(cores, MAX_CORES)
    run = run_probe("probes.cores", str(LOOKS // len(chosen)), *map(str, chosen), environ=environ, timeout_s=TIMEOUT_S)
    if run.end != "answered":
        return CoreFacts(num_cores=len(cores), looks_s={}, message=f"the probe {run.end}: {run.stderr.strip()[-200:]}")
    looks_s = {int(core): tuple(values) for core, values in run.answer["looks_s"].items()}
    return CoreFacts(num_cores=len(cores), looks_s=looks_s, message="")


def spread(cores: Sequence[int], most: int) -> list[int]:
    """Return at most ``most`` of ``cores``, evenly spaced."""
    if len(cores) <= most:
        return list(cores)
    return [cores[index * len(cores) // most] for index in range(most)]


def judge_core_speed(facts: CoreFacts) -> Judgement:
    subject = Subject(f"every look within {SLOWED:g} times the fastest", facts)
    if not facts.looks_s:
        return subject.not_checked(facts.message)
    looks, slowed = sum(map(len, facts.looks_s.values())), sum(facts.slowed.values())
    always = f", {listed('core', facts.slower)} at every look" if facts.slower else ""
    found = (
        f"{1e6 * facts.fastest_s:.0f} µs at best for a fixed piece of Python's work; {slowed} of {looks} looks at "
        f"{len(facts.looks_s)} of {counted(facts.num_cores, 'core')} over {SLOWED:g} times that{always}"
    )
    if slowed <= WORTH_SAYING * looks:
        return subject.ok(found)
    in_spells = slowed - sum(len(facts.looks_s[core]) for core in facts.slower)
    fault = "cores_slowed" if in_spells > WORTH_SAYING * looks else "cores_differ"
    return subject.warning(fault, found, _REPAIRS[fault])
