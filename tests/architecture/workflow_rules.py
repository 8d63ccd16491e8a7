"""The rules of the house for GitHub workflows, beyond what zizmor and actionlint know. Pure: text in, faults out."""

import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML

# Follows a run of a pull request's code, with a token that may write: allowed alone, and by rules of its own.
FOLLOWING = "workflow_run"
# What may reach a self-hosted runner: nothing that somebody without write access can fire.
TRUSTED_TRIGGERS = frozenset({"workflow_dispatch", "schedule"})
INSTALL_NOX = "python3 -m pip install --require-hashes --requirement containers/pins/nox.txt"
# A branch of this repository, or what the workflow was started from. A bare name could be `refs/pull/1/head`.
OWN_REF = "${{ inputs.ref && format('refs/heads/{0}', inputs.ref) || github.ref }}"

# Plain words, variables in quotes, and a folder of the home: nothing else that a shell would split, expand or run.
_NOX = re.compile(r'python3 -m nox -s(?P<sessions>(?: [a-z]\w*)+)(?: --(?: (?:[\w./,=-]+|(?:~/\w+/)?"\$[A-Z_]+"))+)?')


def faults(text: str, *, sessions: Collection[str]) -> list[str]:
    """What is wrong with a workflow; ``sessions`` are those that the noxfile has."""
    workflow = YAML(typ="safe").load(text)
    return [
        f"{name}: {fault}"
        for name, job in workflow["jobs"].items()
        for fault in (*_job(workflow, job), *_steps(workflow, job, sessions), *_following(workflow, job))
    ]


def triggers(workflow: Mapping[str, Any]) -> set[str]:
    return {workflow["on"]} if isinstance(workflow["on"], str) else set(workflow["on"])


def nox_commands(workflow: Mapping[str, Any]) -> list[list[str]]:
    """The words after ``python3 -m nox -s`` of every such step."""
    runs = (step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"])
    return [shlex.split(run)[4:] for run in runs if _NOX.fullmatch(run)]


def _job(workflow: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[str]:
    permissions = job.get("permissions")
    if not isinstance(job.get("timeout-minutes"), int):
        yield "no timeout-minutes"
    if not isinstance(permissions, dict):
        yield "no permissions of its own"
    elif "write" in permissions.values() and any("run" in step for step in job["steps"]):
        yield "may write, and runs code of the checkout"
    if not _is_hosted(job):
        for trigger in sorted(triggers(workflow) - TRUSTED_TRIGGERS):
            yield f"{trigger} reaches a self-hosted runner"


def _following(workflow: Mapping[str, Any], job: Mapping[str, Any]) -> Iterator[str]:
    """What would let a pull request's code, or what it made, act with the token of the run that follows."""
    if FOLLOWING not in triggers(workflow):
        return
    if len(triggers(workflow)) > 1:
        yield f"{FOLLOWING} beside other triggers"
    writes = {name for name, access in (job.get("permissions") or {}).items() if access == "write"}
    for name in sorted(writes - {"pull-requests"}):
        yield f"{FOLLOWING} may write {name}"
    for step in job["steps"]:
        options = step.get("with", {})
        action = step.get("uses", "").partition("@")[0]
        if "run" in step:
            yield f"{FOLLOWING} runs a command"
        if action == "actions/checkout" and options.keys() & {"ref", "repository"}:
            yield f"{FOLLOWING} checks out something else than the default branch"
        if action == "actions/download-artifact" and not options.get("path", "").startswith("${{ runner.temp }}/"):
            yield f"{FOLLOWING} unpacks an artifact into the checkout"


def _is_hosted(job: Mapping[str, Any]) -> bool:
    return bool(re.fullmatch(r"ubuntu-\d\d\.\d\d", str(job["runs-on"])))


def _steps(workflow: Mapping[str, Any], job: Mapping[str, Any], sessions: Collection[str]) -> Iterator[str]:
    for step in job["steps"]:
        if "uses" in step:
            ref = step.get("with", {}).get("ref", OWN_REF)
            if step["uses"].startswith("actions/checkout@") and not _is_hosted(job) and ref != OWN_REF:
                yield f"the self-hosted runner checks out {ref}"
        elif step["run"] != INSTALL_NOX:
            environ = {**workflow.get("env", {}), **job.get("env", {}), **step.get("env", {})}
            yield from _run(step["run"], environ, sessions)


def _run(command: str, environ: Collection[str], sessions: Collection[str]) -> Iterator[str]:
    parts = _NOX.fullmatch(command)
    if parts is None:
        yield f"not one plain nox command: {command}"
        return
    for session in parts["sessions"].split():
        if session not in sessions:
            yield f"no nox session {session}"
    for variable in re.findall(r"\$(\w+)", command):
        if variable not in environ:
            yield f"nothing sets {variable}"
