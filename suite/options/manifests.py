"""Files for a cluster with a control plane of its own; ``suite.launch.registry`` knows the kinds."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Manifests:
    render: str | None = None
    volume_claim: str = "labscale"  # of results
