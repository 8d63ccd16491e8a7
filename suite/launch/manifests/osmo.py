"""Render a campaign as a workflow of NVIDIA's OSMO: one task, whose output is the results folder. Pure.

Tasks of OSMO share no folder, and the ranks of a round write to one, so rounds of several nodes are not rendered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from suite.launch.containers import eula
from suite.launch.manifests import image_digest

OUTPUT: Final = "{{output}}"  # OSMO's word for the folder that it uploads
_CPUS_PER_GPU: Final = 8
_MEMORY_GIB_PER_GPU: Final = 64
_STORAGE_GIB: Final = 100


@dataclass(frozen=True, kw_only=True)
class OsmoOptions:
    image: str
    suite_python: str
    accept_eula: bool = False


def workflow(arguments: Sequence[str], options: OsmoOptions, *, name: str, num_gpus: int) -> dict[str, Any]:
    """A workflow that runs ``suite bench`` with these arguments."""
    licence = eula.ACCEPTED if options.accept_eula else {}
    told = {**licence, **image_digest.variables(options.image)}
    variables = [f"{variable}={value}" for variable, value in told.items()]
    size = max(1, num_gpus)
    resources = {
        "cpu": _CPUS_PER_GPU * size,
        "memory": f"{_MEMORY_GIB_PER_GPU * size}Gi",
        "storage": f"{_STORAGE_GIB}Gi",
        **({"gpu": num_gpus} if num_gpus else {}),
    }
    task = {
        "name": "bench",
        "image": options.image,
        "command": ["env"],
        "args": ["HOME=/tmp", "USER=labscale", *variables, options.suite_python, "-m", "suite", "bench", *arguments],
        "outputs": [{"dataset": {"name": name}}],
    }
    return {"workflow": {"name": name, "resources": {"default": resources}, "tasks": [task]}}
