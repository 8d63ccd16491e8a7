"""The tables that a terminal shows: what will run, and what came out."""

import statistics
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from suite.progress import clock
from suite.reduce import round_time_s
from suite.schema import Case, CaseResult, Environment, PlannedCase
from suite.upstream import Pair, bracketed_differences


def print_plan(
    console: Console, planned: Sequence[PlannedCase], commands: Sequence[str | None], machine: Environment
) -> None:
    """Print each case with size, cost, and the command that would run it, or why it cannot run here."""
    gpus = ", ".join(sorted({f"{gpu.name}" for gpu in machine.gpus}))
    here = f"{len(machine.gpus)} x {gpus}" if gpus else f"no GPU, {machine.num_cpus} CPU cores"
    console.print(f"{len(planned)} cases on this machine ({here})\n", highlight=False)
    for item, command in zip(planned, commands, strict=True):
        case = item.case
        console.print(f"[bold]{case.case_id}[/]", highlight=False)
        console.print(
            f"  {case.task}, {case.topology} ranks, {case.num_envs:,} environments a rank, "
            f"{case.num_envs_global:,} in all, {case.iterations} iterations, {item.rounds} rounds",
            highlight=False,
        )
        console.print(
            f"  minibatch {case.minibatch_size:,} a rank ({case.global_minibatch_size:,} in all), "
            f"{case.optimiser_steps} optimiser steps an iteration, {case.minibatch_rule}",
            highlight=False,
        )
        if item.infeasible:
            console.print("  [yellow]not here:[/] ", end="")
            console.print(item.infeasible, highlight=False, markup=False)
        console.print(f"  {_cost(item)}", highlight=False)
        if command is not None:
            console.print(f"  {command}", style="dim", highlight=False, markup=False, soft_wrap=True)
    _print_total(console, planned)


def _cost(item: PlannedCase) -> str:
    if item.estimated_gpu_minutes is None or item.estimated_wall_s is None:
        return "cost unknown"
    gpu = f"{item.estimated_gpu_minutes:.1f} GPU-minutes, " if item.case.device == "cuda" else ""
    return f"about {gpu}{clock(item.estimated_wall_s)} a round"


def _print_total(console: Console, planned: Sequence[PlannedCase]) -> None:
    feasible = [item for item in planned if not item.infeasible]
    console.print(f"\n{len(feasible)} cases can run here: {_total(feasible)}.", highlight=False)
    if len(feasible) < len(planned):
        console.print(f"All {len(planned)}: {_total(planned)}.", highlight=False)


def _total(items: Sequence[PlannedCase]) -> str:
    wall_s = sum((item.estimated_wall_s or 0.0) * item.rounds for item in items)
    gpu_minutes = sum(item.estimated_gpu_minutes or 0.0 for item in items)
    unknown = sum(1 for item in items if item.estimated_wall_s is None)
    parts = [f"about {clock(wall_s)} one after another" if wall_s else "nothing to do"]
    parts += [f"{gpu_minutes:.0f} GPU-minutes"] if gpu_minutes else []
    parts += [f"{unknown} of unknown cost"] if unknown else []
    return ", ".join(parts)


def print_pair(console: Console, case: Case, pair: Pair | None) -> None:
    """Print one comparison with upstream as soon as it is there."""
    if pair is None:
        console.print(f"    upstream failed on {case.case_id}; its logs are in the run's folder", style="yellow")
        return
    console.print(
        f"    upstream: {pair.theirs_s:.4g} s/iteration, ours {pair.ours_s:.4g} ({pair.difference:+.2%})",
        style="dim",
        highlight=False,
    )


def print_agreement(console: Console, pairs: Sequence[Pair]) -> None:
    """Print per case how our clock compares with upstream's, between processes and within our own."""
    table = Table(title="Rank 0 beside Isaac Lab's own benchmark", box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case", overflow="fold")
    for name in ("pairs", "direct, median", "bracketed, median", "smallest", "largest", "same process"):
        table.add_column(name, justify="right")
    for case_id in dict.fromkeys(pair.case_id for pair in pairs):
        group = [pair for pair in pairs if pair.case_id == case_id]
        direct = [pair.difference for pair in group]
        bracketed = bracketed_differences(group)
        clocks = [value for pair in group if (value := pair.clock_difference) is not None]
        table.add_row(
            case_id,
            str(len(group)),
            f"{statistics.median(direct):+.2%}",
            f"{statistics.median(bracketed):+.2%}" if bracketed else "-",
            f"{min(bracketed or direct):+.2%}",
            f"{max(bracketed or direct):+.2%}",
            f"{statistics.median(clocks):+.3%}" if clocks else "-",
        )
    console.print(table)


def print_summary(console: Console, results: Sequence[CaseResult]) -> None:
    """Print one row per case: the median over rounds of the steady iteration time of the slowest rank."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case", overflow="fold")
    for name in ("ranks", "envs", "rounds", "s/iteration", "frames/s"):
        table.add_column(name, justify="right")
    table.add_column("outcome", overflow="fold")
    for result in results:
        case = result.case
        times_s = [round_time_s(record) for record in result.completed]
        time_s = statistics.median(times_s) if times_s else None
        outcomes = sorted({record.outcome for record in result.rounds})
        table.add_row(
            case.case_id,
            case.topology,
            f"{case.num_envs_global:,}",
            f"{len(times_s)}/{len(result.rounds)}",
            "-" if time_s is None else f"{time_s:.3g}",
            "-" if time_s is None else f"{case.frames_per_iteration / time_s:,.0f}",
            ", ".join(outcomes),
        )
    console.print(table)
