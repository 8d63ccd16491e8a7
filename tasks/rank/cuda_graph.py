"""Whether physics steps run from a captured CUDA graph, and the settings of Warp that a capture needs.

This looks at Isaac Lab's Newton manager after training, not at its configuration: a missing graph slows every step
without a message. Imports no torch.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from suite.schema.record import CheckResult, CheckVerdict

NAME: Final = "cuda_graph"
NOT_IN_USE: Final = "cuda_graph_not_in_use"
WARP_SETTINGS: Final = (
    "cuda_memory_pool_supported",
    "cuda_memory_pool_enabled",
    "cuda_memory_pool_kept_bytes",  # unused memory above this goes back to the driver at each synchronisation
    "cuda_driver_version",
)


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


def read(sim: Any, physics_cfg: Any) -> GraphState:
    """Read the state from Isaac Lab's simulation context and the physics part of its configuration."""
    asked, manager = getattr(physics_cfg, "use_cuda_graph", None), sim.physics_manager
    if asked is None or not hasattr(manager, "_graph"):
        return GraphState(is_asked=asked, is_captured=None)
    is_supported = getattr(manager, "_supports_cuda_graph_capture", lambda: True)
    return GraphState(
        is_asked=bool(asked),
        is_captured=manager._graph is not None,  # noqa: SLF001  Isaac Lab has no public name for it
        is_pending=bool(getattr(manager, "_graph_capture_pending", False)),
        is_supported=bool(is_supported()),
    )


def check(state: GraphState, settings: Mapping[str, Any]) -> CheckResult | None:
    """Judge a rank on a GPU; None if its physics has no graphs.

    A graph that was asked for and is missing is a failure and makes the round invalid: the workload's fingerprint
    states a graph, so the times would be compared with those of machines that have one. If the configuration asks for
    no graph, the fingerprint states that and the round counts.
    """
    if state.is_asked is None:
        return None
    if state.is_captured:
        return _result("ok", "physics steps run from a captured CUDA graph")
    if why := _why_none(state):
        return _result("not_checked", why)
    found = (
        "a CUDA graph was asked for, and physics steps ran without one; "
        f"memory pool supported: {settings['cuda_memory_pool_supported']}, "
        f"enabled: {settings['cuda_memory_pool_enabled']}; driver of CUDA {settings['cuda_driver_version']}"
    )
    return _result("failure", found, fault=NOT_IN_USE)


def _why_none(state: GraphState) -> str | None:
    """Why there is no graph, if that is no fault of the machine."""
    reasons = (
        (not state.is_asked, "the configuration asks for no CUDA graph"),
        (state.is_captured is None, "this Isaac Lab does not show whether it captured a CUDA graph"),
        (not state.is_supported, "Isaac Lab captures no CUDA graph for this physics solver"),
        (state.is_pending, "no physics step was made"),
    )
    return next((reason for applies, reason in reasons if applies), None)


def _result(verdict: CheckVerdict, found: str, *, fault: str | None = None) -> CheckResult:
    return CheckResult(name=NAME, feature="physics", verdict=verdict, found=found, fault=fault)
