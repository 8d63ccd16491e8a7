"""What the nodes of a Ray cluster are and have, and whether they are alike."""

import importlib.util
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from suite.errors import SchedulerError, WorkerEnvironmentError
from suite.external.program import run_program
from suite.files.wording import last_words
from suite.launch.nodes import facts
from suite.launch.nodes.likeness import as_one
from suite.launch.nodes.supervisor import Say
from suite.launch.ray import run as ray_run
from suite.matrix.resources import Resources

TIMEOUT_S: Final = 420.0  # of all questions to the nodes


def resources() -> Resources:
    """How many nodes there are, and what Ray may give away on the smallest. If some have GPUs, others do not count.

    Raises:
        WorkerEnvironmentError: Ray is not installed here.
        SchedulerError: there is no cluster, or it has another version of Ray.
    """
    found = _nodes()
    return Resources(
        nnodes=len(found),
        gpus_per_node=min(int(node["gpus"]) for node in found),
        cpus_per_node=min(int(node["cpus"]) for node in found),
    )


def look_at_nodes(arguments: Sequence[str], *, say: Say, differing_is_fine: bool) -> facts.NodeFacts:
    """Run ``suite.launch.nodes.facts`` with ``arguments`` on all nodes at once; return the environment of the first.

    The report is the worst of all nodes'.

    Raises:
        SchedulerError: a node does not answer with its facts.
        EnvironmentNotFit: the nodes differ, and ``differing_is_fine`` is False.
    """
    ids = [str(node["node_id"]) for node in _nodes()]
    answers = _asked("ask", *ids, "--", *arguments)["answers"]
    said = {}
    for address, run in answers.items():
        if run["end"] != "ended" or run["exit_code"] != 0:
            raise SchedulerError(
                f"{address} does not run {' '.join(arguments[:2])} ({run['end']}, exit code {run['exit_code']}): "
                f"{last_words(run['stderr'])}\n"
                "The checkout and its Python must be in the same folders on every node of Ray."
            )
        said[address] = run["stdout"]
    return as_one(said, say=say, differing_is_fine=differing_is_fine)


def _nodes() -> Sequence[Mapping[str, Any]]:
    nodes: list[dict[str, Any]] = _asked("nodes")["nodes"]
    found = [node for node in nodes if node["gpus"]] or [node for node in nodes if node["cpus"]]
    if not found:
        raise SchedulerError(
            f"No node of the Ray cluster has a GPU or CPU to give away (nodes: {len(nodes)}). Start one by "
            "`ray start`, without --num-cpus=0."
        )
    return found


def _asked(*words: str) -> Mapping[str, Any]:
    """The driver's answer to a question."""
    if importlib.util.find_spec("ray") is None:
        raise WorkerEnvironmentError(
            f"{sys.executable} has no Ray, which --launcher ray needs. `nox -s bench -- --launcher ray` installs it; "
            "containers/pins/ray.txt has the version."
        )
    run = run_program((*ray_run.PROGRAM, *words), environ=os.environ, timeout_s=TIMEOUT_S)
    messages = [json.loads(line) for line in run.stdout.splitlines()]
    if not messages:
        raise SchedulerError(
            f"Ray does not answer ({run.end}, exit code {run.exit_code}): {last_words(run.stderr)}\n`ray status` on "
            "this machine must show the cluster."
        )
    if messages[-1]["event"] == "error":
        raise ray_run.error_of(messages[-1])
    answer: dict[str, Any] = messages[-1]
    return answer
