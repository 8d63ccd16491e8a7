"""Render a campaign as a workflow of NVIDIA's OSMO: one task, whose output is the results folder. Pure.

Tasks of OSMO share no folder, and the ranks of a round write to one, so rounds of several nodes are not rendered.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from suite.launch.images import eula
from suite.launch.images.table import SUITE_PYTHON
from suite.launch.manifests import image_digest
from suite.launch.runtime import ManifestEntry
from suite.options.options import Manifests, Options
from suite.schema.rank_variables import travelling

OUTPUT: Final = "{{output}}"  # OSMO's word for the folder that it uploads
_CPUS_PER_GPU: Final = 8
_MEMORY_GIB_PER_GPU: Final = 64
_STORAGE_GIB: Final = 100


@dataclass(frozen=True, kw_only=True)
class OsmoOptions:
    image: str
    suite_python: str
    accept_eula: bool = False
    cluster: Manifests = field(default_factory=Manifests)
    settings: Mapping[str, str] = field(default_factory=dict)  # of the user's shell


def workflow(arguments: Sequence[str], options: OsmoOptions, *, name: str, num_gpus: int) -> dict[str, Any]:
    """A workflow that runs ``suite bench`` with these arguments."""
    licence = eula.ACCEPTED if options.accept_eula else {}
    told = {**options.settings, **licence, **image_digest.variables(options.image)}
    variables = [f"{variable}={value}" for variable, value in told.items()]
    size = max(1, num_gpus)
    cluster = options.cluster
    resources = {
        "cpu": cluster.pod_cpus or _CPUS_PER_GPU * size,
        "memory": cluster.pod_memory or f"{_MEMORY_GIB_PER_GPU * size}Gi",
        "storage": cluster.pod_storage or f"{_STORAGE_GIB}Gi",
        **({"gpu": num_gpus} if num_gpus else {}),
        **({"platform": cluster.platform} if cluster.platform else {}),
    }
    task = {
        "name": "bench",
        "image": options.image,
        "command": ["env"],
        "args": ["HOME=/tmp", "USER=labscale", *variables, options.suite_python, "-m", "suite", "bench", *arguments],
        "outputs": [{"dataset": {"name": name}}],
    }
    return {"workflow": {"name": name, "resources": {"default": resources}, "tasks": [task]}}


def _campaign(arguments: Sequence[str], options: Options, name: str, num_gpus: int) -> dict[str, Any]:
    place = options.place
    asked = OsmoOptions(
        image=place.image or "",
        suite_python=SUITE_PYTHON,
        accept_eula=place.accept_eula,
        cluster=options.manifests,
        settings=travelling(os.environ),
    )
    return workflow(arguments, asked, name=name, num_gpus=num_gpus)


OSMO: Final = ManifestEntry(
    name="osmo",
    submit="osmo workflow submit",
    suffix=".yaml",
    results=lambda _matrix: OUTPUT,
    campaign=_campaign,
    takes=("pod_cpus", "pod_memory", "pod_storage", "platform"),
)
