"""Whether MuJoCo Warp dropped contacts or constraints during training because one of its buffers was full.

An iteration with fewer contacts is faster, so such a run looks like a fast one. MuJoCo Warp notes each world's full
buffers in ``Data.overflow``; a reset may clear a world's note. So the notes are collected on the device after every
iteration, outside its time and without a synchronisation, and read once after training. Imports no torch.
"""

from collections.abc import Mapping
from typing import Any, Final

from suite.schema.record import OVERFLOW_CHECK, CheckResult, CheckVerdict

DROPPED: Final = "contacts_or_constraints_dropped"
LIMIT: Final = "iteration_limit_reached"
# Flag of mujoco_warp.OverflowType -> what MuJoCo Warp asks to increase. Flags without a capacity are named alone.
CAPACITIES: Final[Mapping[str, str]] = {
    "NEFC": "njmax",
    "NJMAX_NNZ": "njmax_nnz",
    "BROADPHASE": "nconmax",
    "NARROWPHASE": "nconmax",
    "CCD": "naccdmax",
    "CONTACT_MATCH": "contact_sensor_maxmatch",
    "NVMAX": "nvmax",
}


class Overflow:
    """Collects ``words``, a tensor with one word of flags per world, on its device. ``flags``: bit -> its name."""

    def __init__(self, words: Any, flags: Mapping[int, str]) -> None:
        self._words, self._flags = words, flags
        self._seen = words & 0
        self._drops = sum(bit for bit, name in flags.items() if not is_limit(name))
        self._dropped: list[Any] = []  # after each iteration: whether any world has dropped anything so far

    def collect(self) -> None:
        """Add what the worlds say now. Nothing waits for the device."""
        self._seen |= self._words
        self._dropped.append((self._seen & self._drops).any())

    def check(self) -> CheckResult:
        """Read and judge what was collected."""
        worlds = {name: int(((self._seen & bit) != 0).sum()) for bit, name in self._flags.items()}
        dropped = [bool(value) for value in self._dropped]
        return judge(worlds, num_worlds=len(self._seen), first=dropped.index(True) if any(dropped) else None)


def watch(sim: Any, timer: Any) -> Overflow | None:
    """Collect after every iteration of an IterationTimer; None if the physics of ``sim`` is not MuJoCo Warp."""
    solver = getattr(sim.physics_manager, "_solver", None)  # Isaac Lab has no public name for it
    words = getattr(getattr(solver, "mjw_data", None), "overflow", None)  # older versions note nothing
    if words is None:
        return None
    import mujoco_warp
    import warp

    overflow = Overflow(warp.to_torch(words), {flag.value: flag.name for flag in mujoco_warp.OverflowType})
    timer.after_iteration = overflow.collect
    return overflow


def is_limit(flag: str) -> bool:
    """Whether a flag says that a solver ended at its limit of iterations: it drops nothing."""
    return flag.endswith("ITERATIONS")


def judge(worlds: Mapping[str, int], *, num_worlds: int, first: int | None) -> CheckResult:
    """Judge in how many worlds each flag was seen; ``first``: the iteration after which the first drop was seen."""
    seen = {flag: count for flag, count in worlds.items() if count}
    if not seen:
        return _result("ok", f"none was full in {num_worlds} worlds")
    found = ", ".join(f"{_named(flag)} in {count} of {num_worlds} worlds" for flag, count in seen.items())
    if all(map(is_limit, seen)):
        return _result("warning", found, fault=LIMIT)
    capacities = dict.fromkeys(CAPACITIES[flag] for flag in seen if flag in CAPACITIES)
    repair = f"; increase {' and '.join(capacities)} of the physics solver" if capacities else ""
    return _result("failure", f"{found}; dropped from iteration {first} on{repair}", fault=DROPPED)


def _named(flag: str) -> str:
    return f"{flag} ({CAPACITIES[flag]})" if flag in CAPACITIES else flag


def _result(verdict: CheckVerdict, found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=OVERFLOW_CHECK, feature="physics", verdict=verdict, found=found, fault=fault)
