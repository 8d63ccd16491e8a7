"""Print the plan and the results of a campaign."""

import statistics
from collections.abc import Mapping, Sequence
from itertools import chain

from rich import box
from rich.console import Console
from rich.table import Table

from suite.campaign.display.progress import clock
from suite.campaign.runs import warm_up
from suite.campaign.runs.upstream import Pair, bracketed_differences
from suite.files.wording import are, counted
from suite.matrix.blocks import Need, gpu_minutes, wall_s
from suite.options.command_line import say
from suite.schema.observations import TelemetrySummary
from suite.schema.record import Case, CaseResult, Environment, PlannedCase
from suite.statistics.core_speed import fastest_probes_s, slowed_cores
from suite.statistics.intervals import mean_of
from suite.statistics.reduce import completed_times_s, round_time_s
from suite.statistics.round_flags import flags
from suite.statistics.start_up import StartUp, classify, start_up
from suite.statistics.stopping_rule import Rule, relative_half_width
from suite.statistics.timing_cost import timing_cost


def print_plan(
    console: Console, planned: Sequence[PlannedCase], commands: Sequence[str | None], machine: Environment
) -> None:
    """Print each case with its size, its cost, and the command that would run it, or why it cannot run here."""
    gpus = ", ".join(sorted({f"{gpu.name}" for gpu in machine.gpus}))
    here = f"{len(machine.gpus)} x {gpus}" if gpus else f"no GPU, {machine.num_cpus} CPU cores"
    say(console, f"{counted(len(planned), 'case')} on this machine ({here})\n")
    for item, command in zip(planned, commands, strict=True):
        case = item.case
        say(console, case.case_id, style="bold")
        say(
            console,
            f"  {case.task}, {case.topology} ranks, {case.num_envs:,} environments a rank, "
            f"{case.num_envs_global:,} in all, {case.iterations} iterations, {_rounds(item)}",
        )
        say(console, f"  {_learning(case)}")
        if item.infeasible:
            console.print("  [yellow]not here:[/] ", end="")
            say(console, item.infeasible)
        say(console, f"  {_cost(item)}")
        if command is not None:
            say(console, f"  {command}", style="dim")
    _print_total(console, planned)


def _learning(case: Case) -> str:
    if not (case.learns or case.is_pipeline):
        return f"nothing is trained: {case.workload}"
    return (
        f"minibatch {case.minibatch_size:,} a rank ({case.global_minibatch_size:,} in all), "
        f"{case.optimiser_steps} optimiser steps an iteration, {case.minibatch_rule}"
    )


def _rounds(item: PlannedCase) -> str:
    seeds = ", each with seeds of its own" if item.case.seed_per_round and item.rounds > 1 else ""
    return counted(item.rounds, "round") + seeds


def print_blocks(console: Console, blocks: Sequence[Sequence[PlannedCase]], needs: Mapping[str, Need | None]) -> None:
    """Print the blocks of a round with their memory, and what measuring in turns saves; nothing without a block."""
    together = [block for block in blocks if len(block) > 1]
    if not together:
        return
    say(console, f"\nRounds of {counted(len(together), 'block')} start together and are measured in turns:")
    for block in together:
        known = [need for item in block if (need := needs[item.case.case_id]) is not None]
        gpus_gb = [need.gpu_gb for need in known if need.gpu_gb is not None]
        of_gpu = f"{sum(gpus_gb):.0f} GB of a GPU, " if gpus_gb else ""
        memory = f"{of_gpu}{sum(need.host_gb for need in known):.0f} GB of the host"
        say(console, f"  {', '.join(item.case.case_id for item in block)}")
        say(console, f"    at most {memory}{_saved(block)}", style="dim")
    if unknown := [item.case.case_id for item in chain(*blocks) if needs[item.case.case_id] is None]:
        say(console, f"  First alone, as nobody measured their memory: {', '.join(unknown)}", style="dim")


def _saved(block: Sequence[PlannedCase]) -> str:
    block_s = wall_s(block)
    if block_s is None:
        return ""
    alone_s = sum(item.estimated_wall_s or 0.0 for item in block)
    minutes, alone = gpu_minutes(block), sum((item.estimated_gpu_minutes or 0.0) / item.rounds for item in block)
    gpu = f", {minutes:.1f} GPU-minutes, {alone:.1f} one after another" if minutes else ""
    return f"; about {clock(block_s)} a round, {clock(alone_s)} one after another{gpu}"


def print_warm_ups(console: Console, warm_ups: Sequence[PlannedCase]) -> None:
    """Print which warm-ups run before the cases to compile kernels, and their cost without compilation."""
    for item in warm_ups:
        say(
            console,
            f"Before them {warm_up.in_words(item.case)}: warm-up, not counted, "
            f"{'' if item.estimated_wall_s is None else f'about {clock(item.estimated_wall_s)} and '}the time that its "
            "kernels take to compile.",
        )


def _cost(item: PlannedCase) -> str:
    if item.estimated_gpu_minutes is None or item.estimated_wall_s is None:
        return "cost unknown"
    gpu = f", {item.estimated_gpu_minutes:.1f} GPU-minutes in all" if item.case.device == "cuda" else ""
    cold = ", and the time that its kernels take to compile in every round" if item.case.kernel_cache == "empty" else ""
    return f"about {clock(item.estimated_wall_s)} a round{gpu}{cold}"


def _print_total(console: Console, planned: Sequence[PlannedCase]) -> None:
    feasible = [item for item in planned if not item.infeasible]
    say(console, f"\n{counted(len(feasible), 'case')} can run here: {_total(feasible)}.")
    if len(feasible) < len(planned):
        say(console, f"All {len(planned)}: {_total(planned)}.")


def _total(items: Sequence[PlannedCase]) -> str:
    wall_s = sum((item.estimated_wall_s or 0.0) * item.rounds for item in items)
    gpu_minutes = sum(item.estimated_gpu_minutes or 0.0 for item in items)
    unknown = sum(1 for item in items if item.estimated_wall_s is None)
    parts = [f"about {clock(wall_s)} one after another"] if wall_s else []
    parts += [f"{gpu_minutes:.0f} GPU-minutes"] if gpu_minutes else []
    parts += [f"{unknown} of unknown cost"] if unknown else []
    return ", ".join(parts) or "nothing to do"


def print_pair(console: Console, case: Case, pair: Pair | None) -> None:
    """Print one comparison with upstream."""
    if pair is None:
        say(console, f"    upstream failed on {case.case_id}; its logs are in the run's folder", style="yellow")
        return
    say(
        console,
        f"    upstream: {pair.theirs_s:.4g} s/iteration, ours {pair.ours_s:.4g} ({pair.difference:+.2%})",
        style="dim",
    )


def print_agreement(console: Console, pairs: Sequence[Pair]) -> None:
    """Print for each case how our clock compares with upstream's, between processes and within our own process."""
    table = Table(title="Rank 0 against Isaac Lab's own benchmark", box=box.SIMPLE_HEAD, pad_edge=False)
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
    """Print a row for each case: the mean time of an iteration over its rounds."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("case", overflow="fold")
    has_power = any(_of_gpus(result) for result in results)
    for name in ("ranks", "envs", "rounds", "s/iteration", "frames/s", *(("W", "frames/J") if has_power else ())):
        table.add_column(name, justify="right")
    table.add_column("outcome", overflow="fold")
    for result in results:
        case = result.case
        times_s = [round_time_s(record) for record in result.completed]
        time_s = mean_of(times_s).value if times_s else None
        outcomes = sorted({record.outcome for record in result.rounds})
        table.add_row(
            case.case_id,
            case.topology,
            f"{case.num_envs_global:,}",
            f"{len(times_s)}/{len(result.rounds)}",
            "-" if time_s is None else f"{time_s:.3g}",
            "-" if time_s is None or not case.has_frames else f"{case.frames_per_iteration / time_s:,.0f}",
            *(_power_columns(result) if has_power else ()),
            ", ".join(outcomes),
        )
    console.print(table)


def _of_gpus(result: CaseResult) -> list[TelemetrySummary]:
    telemetry = [record.telemetry for record in result.completed]
    return [summary for summary in telemetry if summary is not None and summary.gpus]


def _power_columns(result: CaseResult) -> tuple[str, str]:
    """Mean power of all GPUs together [W] and frames per joule; both are medians over the rounds."""
    seen = _of_gpus(result)
    power_w = [summary.power_w.mean for summary in seen if summary.power_w is not None]
    per_joule = [summary.frames_per_joule for summary in seen if summary.frames_per_joule is not None]
    return (
        f"{statistics.median(power_w):,.0f}" if power_w else "-",
        f"{statistics.median(per_joule):,.0f}" if per_joule else "-",
    )


def print_rule(console: Console, rule: Rule) -> None:
    """Print when a case has enough rounds, unless that is a fixed number."""
    if rule.precision is None:
        return
    budget = (
        "" if rule.budget_s is None else f", or {counted(rule.budget_s / 60, 'minute')} {are(rule.budget_s / 60)} over"
    )
    say(
        console,
        f"After {counted(rule.rounds, 'round')} a case goes on until the half-width of the 95 % interval of its ratio"
        " to the baseline of its series"
        f" is at most {100 * rule.precision:g} %, or it has {counted(rule.most_rounds, 'round')}{budget}.",
    )


def print_rounds(console: Console, results: Sequence[CaseResult]) -> None:
    """Print for each case why its rounds ended, how precise its time is, how long it starts, and its flags."""
    for result in results:
        if len(result.completed) > 1:
            say(console, result.case.case_id, style="bold")
            for line in _lines_on_rounds(result):
                say(console, f"  {line}")
    single = [result for result in results if len(result.completed) == 1]
    if single:
        with_one = f"{counted(len(single), 'case')} with one completed round"
        say(console, f"{with_one}: the spread between rounds is unknown.")
        for result in single:
            for flag in flags(result.rounds):
                say(console, f"{result.case.case_id}: {flag}", style="yellow")


def _lines_on_rounds(result: CaseResult) -> list[str]:
    times_s = completed_times_s(result.rounds)
    found = mean_of(times_s)
    interval, width = found.interval, relative_half_width(found)
    lines = [f"rounds: {result.ended_because}"] if result.ended_because else []
    if interval and width is not None:
        lines.append(f"between {interval[0]:.4g} and {interval[1]:.4g} s/iteration at 95 % (half-width {width:.1%})")
    starts = [start_up(record) for record in result.completed]
    kinds = classify(starts)
    for kind in ("cold", "warm", None):
        chosen = [start for start, its_kind in zip(starts, kinds, strict=True) if its_kind == kind]
        if chosen:
            name = f"{kind} start" if kind else "start"
            time_s = statistics.median(start.total_s for start in chosen)
            lines.append(
                f"{name}: {time_s:.1f} s{_compiled(chosen)} ({len(chosen)} of {counted(len(starts), 'round')})"
            )
    return lines + [f"flag: {flag}" for flag in flags(result.rounds)]


def _compiled(starts: Sequence[StartUp]) -> str:
    """How many kernels these starts compiled, in words. One kernel of a new size already makes a start cold."""
    counts = sorted(start.kernels_compiled for start in starts if start.kernels_compiled)
    if not counts:
        return ""
    known = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f", kernels compiled: {known}"


def print_slowed_cores(console: Console, results: Sequence[CaseResult]) -> None:
    """Print how slowed cores affected the iterations, if they did."""
    completed = [record for result in results for record in result.completed]
    said = slowed_cores(results, fastest_probes_s(completed))
    if said is not None:
        say(console, str(said), style="yellow")


def print_timing_cost(console: Console, results: Sequence[CaseResult]) -> None:
    """Print what detailed timing costs the iterations that have it, over all training of the campaign."""
    cost = timing_cost([record for result in results if result.case.learns for record in result.completed])
    if cost is None:
        return
    between = "" if cost.interval is None else "{:+.1%} to {:+.1%} at 95 %; ".format(*cost.interval)
    say(
        console,
        f"Detailed timing changes the time of an iteration by {cost.median:+.1%} ({between}"
        f"{cost.iterations} iterations had it). "
        "The times above are of the other iterations.",
    )
