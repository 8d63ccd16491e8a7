"""The text of a pull request that adds a set: hardware, driver, command, commit, and warnings. Pure.

A warning is what a reader must know of how a campaign was measured: was the machine idle, did runs complete. It refuses
nothing: slow and failed runs are published too.
"""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from reports.figures.tables import runs_of
from reports.sets.machines import hardware
from reports.submit.placing import Target
from reports.submit.source import Identity, Source
from suite.files.wording import are, counted
from suite.schema.record import Environment
from suite.statistics.core_speed import slowed_cores
from suite.statistics.round_flags import MATTERS, OTHERS_PERCENT
from suite.statistics.stopping_rule import is_cut_off

GPU_CHECK: Final = "other_processes"  # of env_check: processes on the GPUs before the first run


def text(source: Source, target: Target, warnings: Sequence[str]) -> str:
    """Return Markdown whose first line is the title."""
    environment = source.place.environment
    rows = {
        "hardware": _hardware(environment),
        "driver": f"{environment.driver_version or 'unknown'} (CUDA {environment.cuda_driver_version or 'unknown'})",
        "system": ", ".join(filter(None, (environment.os, environment.kernel))) or "unknown",
        "command, as far as it is stored": f"`{command(source)}`",
        "runs of a configuration": rule(source.identity),
        "commit": environment.git_commit,
        "first run": source.place.first_started_utc,
        "results": runs(source),
        "measured by": target.entry.contributed_by,
    }
    cells = {name: value.replace("|", r"\|") for name, value in rows.items() if value}
    table = "\n".join(f"| {name} | {value} |" for name, value in cells.items())
    listed = "\n".join(f"- {warning}" for warning in warnings) or "None."
    return (
        f"Results: {target.entry.full_title}\n\n"
        f"A new set of version {target.version.name}, `{target.entry.folder}`. `nox -s submit` has checked it:"
        " `verify` finds no difference in the version.\n\n"
        f"| | |\n| --- | --- |\n{table}\n\n"
        f"Warnings:\n\n{listed}\n"
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


def warnings(source: Source) -> tuple[str, ...]:
    """Return a sentence for each."""
    return (*_of_cpu(source), *_of_gpus(source), *_of_runs(source))


def _of_cpu(source: Source) -> Iterator[str]:
    runs = runs_of(source.version).completed.filter(~pl.col("is_repeat"), ~pl.col("only_learning"))
    most = runs.group_by("configuration").agg(pl.col("others_share", "stolen_share").max())
    yield from _over(most["others_share"], OTHERS_PERCENT / 100, "Other processes used", "the CPU time")
    yield from _over(most["stolen_share"], MATTERS, "A hypervisor gave others", "the CPU time in use here")
    campaign = source.result_set.campaign
    if slowed := slowed_cores(campaign.with_twins, campaign.fastest_probe_s):
        yield slowed


def _over(shares: pl.Series, limit: float, who: str, what: str) -> Iterator[str]:
    """Speak of the configurations whose most is over the limit, and of those in which it was not measured."""
    known = shares.drop_nulls()
    above = [share for share in known if share > limit]
    if above:
        yield (
            f"{who} up to {max(above):.1%} of {what}; it was over {limit:.0%} in {len(above)} of"
            f" {counted(len(known), 'configuration')}."
        )
    if len(known) < len(shares):
        unknown = counted(len(shares) - len(known), "configuration")
        yield f"{who} an unknown share of {what} in {unknown}: it was not measured."


def _of_gpus(source: Source) -> Iterator[str]:
    checks = [
        [check for check in environment.environment.checks if check.name == GPU_CHECK] for environment in source.begun
    ]
    slowed = sum(any(check.verdict in ("warning", "failure") for check in checks_of_gpu) for checks_of_gpu in checks)
    if slowed:
        yield f"Other processes were on the GPUs before {slowed} of {counted(len(checks), 'run')}."
    if not all(checks):
        number = sum(not checks_of_gpu for checks_of_gpu in checks)
        yield f"Whether other processes were on the GPUs is not known of {counted(number, 'run')}."


def _of_runs(source: Source) -> Iterator[str]:
    failed = [record for record in source.begun if record.outcome != "completed"]
    if failed:
        outcomes = ", ".join(sorted({record.outcome for record in failed}))
        yield f"{len(failed)} of {counted(len(source.begun), 'run')} did not complete ({outcomes})."
    cut = [result for result in source.results if is_cut_off(result.ended_because)]
    if cut:
        yield (
            f"{counted(len(cut), 'configuration')} {are(len(cut))} cut off: fewer runs are stored than were asked for."
        )
