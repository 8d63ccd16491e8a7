"""The text of a pull request that adds a set: hardware, driver, command, commit and warnings. Pure."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from reports.analysis.environments import hardware
from reports.submit.source import Identity, Source
from reports.submit.target import Target
from suite.files.wording import counted
from suite.schema.record import Environment


def text(source: Source, target: Target, warnings: Sequence[str]) -> str:
    """Return Markdown whose first line is the title."""
    environment = source.place.environment
    rows = {
        "hardware": _hardware(environment),
        "driver": f"{environment.driver_version or 'unknown'} (CUDA {environment.cuda_driver_version or 'unknown'})",
        "system": ", ".join(filter(None, (environment.os, environment.kernel))) or "unknown",
        "versions": ", ".join(f"{name} {version}" for name, version in source.place.versions.items()) or "unknown",
        "command, as far as it is stored": f"`{command(source)}`",
        "runs of a configuration": rule(source.identity),
        "commit": environment.git_commit,
        "first run": source.place.first_started_utc,
        "results": runs(source),
        "measured by": target.entry.contributed_by,
    }
    table = "\n".join(f"| {name} | {_cell(value)} |" for name, value in rows.items() if value)
    said = "\n".join(f"- {warning}" for warning in warnings) or "None."
    return (
        f"Results: {target.entry.full_title}\n\n"
        f"A new set of version {target.version.name}, `{target.entry.folder}`. `nox -s submit` has checked it:"
        " `verify` finds no difference in the version.\n\n"
        f"| | |\n| --- | --- |\n{table}\n\n"
        f"Warnings:\n\n{said}\n"
    )


def command(source: Source) -> str:
    """Return the command of the campaign, as far as ``campaign.json`` has its options.

    It names no stack if the campaign ran several: the option would leave all but one out.
    """
    identity, stacks = source.identity, {result.case.stack for result in source.results}
    matrix = identity.get("matrix")
    options = {
        "--matrix": matrix and Path(matrix).name,  # a path may name a user
        "--capacity": identity.get("capacity"),
        "--stack": identity.get("stack") if len(stacks) == 1 else None,
        "--seed": identity.get("seed"),
        "--emulate-nodes": identity.get("emulated_nodes"),
        "--host-label": identity.get("host_label"),
    }
    given = [f"{name} {shlex.quote(str(value))}" for name, value in options.items() if value is not None]
    return " ".join(["python3 -m nox -s bench --", *given])


def rule(identity: Identity) -> str | None:
    """Return how many runs a configuration got; None if ``campaign.json`` does not say."""
    rounds, precision = identity.get("rounds"), identity.get("precision")
    if not rounds:
        return None
    if not precision:
        return counted(rounds, "run")
    return f"{rounds} to {identity.get('max_rounds')}, until the interval of the figure is within {precision:.1%}"


def runs(source: Source) -> str:
    """Return the number of configurations and runs."""
    return f"{counted(len(source.results), 'configuration')}, {counted(len(source.begun), 'run')}"


def _hardware(environment: Environment) -> str:
    parts = [hardware(environment), environment.cpu_model]
    parts.append(f"{environment.num_cpus} CPUs" if environment.num_cpus else None)
    parts.append(f"{environment.memory_gb:g} GB of memory" if environment.memory_gb else None)
    return ", ".join(filter(None, parts))


def _cell(value: str) -> str:
    return value.replace("|", r"\|")
