"""Files for a cluster with a control plane of its own; ``suite.launch.registry`` knows the kinds."""

import argparse
from dataclasses import dataclass

from suite.options.types import label, object_name, positive, quantity, resource_name, toleration


@dataclass(frozen=True, kw_only=True)
class Manifests:
    render: str | None = None
    volume_claim: str = "labscale"  # of results
    tolerations: tuple[str, ...] = ()  # each KEY[=VALUE][:EFFECT]
    node_selectors: tuple[str, ...] = ()  # each KEY=VALUE
    runtime_class: str | None = None
    gpu_resource: str = "nvidia.com/gpu"
    pull_secrets: tuple[str, ...] = ()
    pod_cpus: int | None = None
    pod_memory: str | None = None  # a quantity of Kubernetes
    pod_storage: str | None = None
    platform: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what a cluster may want of its pods; ``ManifestEntry.takes`` says which kind of cluster takes what."""
    kubernetes, osmo = "with --render kubernetes:", "with --render osmo:"
    parser.add_argument(
        "--volume-claim", type=object_name, metavar="NAME",
        help=f"{kubernetes} the results' volume claim (default: {Manifests.volume_claim})",
    )  # fmt: skip
    parser.add_argument(
        "--toleration", dest="tolerations", type=toleration, action="append", default=[],
        metavar="KEY[=VALUE][:EFFECT]",
        help=f"{kubernetes} run on nodes with this taint; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--node-selector", dest="node_selectors", type=label, action="append", default=[], metavar="KEY=VALUE",
        help=f"{kubernetes} run on nodes with this label alone; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--runtime-class",
        type=object_name,
        metavar="NAME",
        help=f"{kubernetes} the RuntimeClass, such as nvidia on k3s",
    )
    parser.add_argument(
        "--gpu-resource", type=resource_name, metavar="NAME",
        help=f"{kubernetes} what the cluster calls its GPUs (default: {Manifests.gpu_resource})",
    )  # fmt: skip
    parser.add_argument(
        "--pull-secret", dest="pull_secrets", type=object_name, action="append", default=[], metavar="NAME",
        help=f"{kubernetes} a Secret with which the image is pulled; repeatable",
    )  # fmt: skip
    parser.add_argument("--pod-cpus", type=positive, metavar="N", help="with --render: CPUs of a pod")
    parser.add_argument("--pod-memory", type=quantity, metavar="SIZE", help="with --render: memory of a pod, e.g. 64Gi")
    parser.add_argument(
        "--pod-storage", type=quantity, metavar="SIZE", help=f"{osmo} disk of the task (default: 100Gi)"
    )
    parser.add_argument("--platform", type=object_name, metavar="NAME", help=f"{osmo} the platform of its pool")
