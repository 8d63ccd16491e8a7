"""Whether physics steps ran from a captured CUDA graph, and whether MuJoCo Warp dropped contacts or constraints.

A missing graph slows every step without a message, so Isaac Lab's Newton manager is read after training, not its
configuration.

An iteration with fewer contacts is faster, so a run whose buffers were full looks like a fast one. MuJoCo Warp notes
each world's full buffers in ``Data.overflow``; a reset may clear a world's note. So the notes are collected on the
device after every iteration, outside its time and without a synchronisation, and read once after training. Imports no
torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from suite.schema.record import OVERFLOW_CHECK, CheckResult, CheckVerdict

GRAPH_CHECK: Final = "cuda_graph"
GRAPH_NOT_IN_USE: Final = "cuda_graph_not_in_use"
WARP_SETTINGS: Final = (
    "cuda_memory_pool_supported",
    "cuda_memory_pool_enabled",
    "cuda_memory_pool_kept_bytes",  # unused memory above this goes back to the driver at each synchronisation
    "cuda_driver_version",
)
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


@dataclass(frozen=True, kw_only=True)
class GraphState:
    """``is_captured`` is None if the physics has no graphs, or if this Isaac Lab keeps them elsewhere."""

    is_asked: bool | None  # by the configuration; None if the physics has no such setting
    is_captured: bool | None
    is_pending: bool = False  # there was no physics step yet
    is_supported: bool = True  # by the physics solver in its configuration


def warp_settings(device: str) -> dict[str, Any]:
    """Warp's settings for a rank's device; all None on a CPU."""
    if not device.startswith("cuda"):
        return dict.fromkeys(WARP_SETTINGS)
    import warp

    version = getattr(warp, "get_cuda_driver_version", lambda: None)()  # Isaac Sim's own Warp may have none
    is_supported = bool(warp.is_mempool_supported(device))
    keeps = getattr(warp, "get_mempool_release_threshold", lambda _: None)  # as above
    values = (
        is_supported,
        bool(warp.is_mempool_enabled(device)),
        keeps(device) if is_supported else None,
        None if version is None else ".".join(map(str, version)),
    )
    return dict(zip(WARP_SETTINGS, values, strict=True))


def read_graph(sim: Any, physics_cfg: Any) -> GraphState:
    """Read the state from Isaac Lab's simulation context and the physics part of its configuration."""
    requested, manager = getattr(physics_cfg, "use_cuda_graph", None), sim.physics_manager
    if requested is None or not hasattr(manager, "_graph"):
        return GraphState(is_asked=requested, is_captured=None)
    is_supported = getattr(manager, "_supports_cuda_graph_capture", lambda: True)
    return GraphState(
        is_asked=bool(requested),
        is_captured=manager._graph is not None,  # noqa: SLF001  Isaac Lab has no public name for it
        is_pending=bool(getattr(manager, "_graph_capture_pending", False)),
        is_supported=bool(is_supported()),
    )


def check_graph(state: GraphState, settings: Mapping[str, Any]) -> CheckResult | None:
    """Judge a rank on a GPU; None if its physics has no graphs.

    A graph that was asked for and is missing is a failure and makes the round invalid: the workload's fingerprint
    states a graph, so the times would be compared with those of machines that have one. If the configuration asks for
    no graph, the fingerprint states that and the round counts.
    """
    if state.is_asked is None:
        return None
    if state.is_captured:
        return _result(GRAPH_CHECK, "ok", "physics steps run from a captured CUDA graph")
    reasons = (  # that are no fault of the machine
        (not state.is_asked, "the configuration asks for no CUDA graph"),
        (state.is_captured is None, "this Isaac Lab does not show whether it captured a CUDA graph"),
        (not state.is_supported, "Isaac Lab captures no CUDA graph for this physics solver"),
        (state.is_pending, "no physics step was made"),
    )
    for applies, reason in reasons:
        if applies:
            return _result(GRAPH_CHECK, "not_checked", reason)
    found = (
        "a CUDA graph was asked for, and physics steps ran without one; "
        f"memory pool supported: {settings['cuda_memory_pool_supported']}, "
        f"enabled: {settings['cuda_memory_pool_enabled']}; driver of CUDA {settings['cuda_driver_version']}"
    )
    return _result(GRAPH_CHECK, "failure", found, fault=GRAPH_NOT_IN_USE)


# ---- full buffers ----


class Overflow:
    """Collects ``words``, a tensor with one word of flags per world, on its device. ``flags``: bit -> its name."""

    def __init__(self, words: Any, flags: Mapping[int, str]) -> None:
        self._words, self._flags = words, flags
        self._noted = words & 0
        self._drops = sum(bit for bit, name in flags.items() if not is_limit(name))
        self._dropped: list[Any] = []  # after each iteration: whether any world has dropped anything so far

    def collect(self) -> None:
        """Add what the worlds say now. Nothing waits for the device."""
        self._noted |= self._words
        self._dropped.append((self._noted & self._drops).any())

    def check(self) -> CheckResult:
        """Read and judge what was collected."""
        counts = {flag: int(((self._noted & bit) != 0).sum()) for bit, flag in self._flags.items()}
        worlds = {flag: count for flag, count in counts.items() if count}
        if not worlds:
            return _result(OVERFLOW_CHECK, "ok", f"none was full in {len(self._noted)} worlds")
        found = ", ".join(f"{_named(flag)} in {count} of {len(self._noted)} worlds" for flag, count in worlds.items())
        if all(map(is_limit, worlds)):
            return _result(OVERFLOW_CHECK, "warning", found, fault=LIMIT)
        first = [bool(value) for value in self._dropped].index(True)
        capacities = dict.fromkeys(CAPACITIES[flag] for flag in worlds if flag in CAPACITIES)
        repair = f"; increase {' and '.join(capacities)} of the physics solver" if capacities else ""
        return _result(OVERFLOW_CHECK, "failure", f"{found}; dropped from iteration {first} on{repair}", fault=DROPPED)


def watch_overflow(sim: Any, timer: Any) -> Overflow | None:
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


def _named(flag: str) -> str:
    return f"{flag} ({CAPACITIES[flag]})" if flag in CAPACITIES else flag


def _result(name: str, verdict: CheckVerdict, found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=name, feature="physics", verdict=verdict, found=found, fault=fault)
