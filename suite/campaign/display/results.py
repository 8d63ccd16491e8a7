"""The results of a campaign in the terminal: tables, how certain they are, where files are, and what to do next."""

import shlex
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from rich import box
from rich.console import Console, JustifyMethod
from rich.table import Table

from suite.campaign import run_log
from suite.campaign.display.progress import clock
from suite.campaign.runs.upstream import Pair, bracketed_differences
from suite.campaign.state import Campaign
from suite.files.wording import counted, three_digits
from suite.options.command_line import say
from suite.options.options import as_typed
from suite.records.rewards import last_reward
from suite.records.worked import (
    LEGEND,
    SPEEDS_MEAN_NOTHING,
    SYMBOLS,
    TIMES_MEAN_NOTHING,
    State,
    has_speeds,
    only_learning,
    what_worked,
)
from suite.schema.observations import TelemetrySummary
from suite.schema.record import Case, CaseResult
from suite.statistics.core_speed import fastest_probes_s, slowed_cores
from suite.statistics.intervals import CONFIDENCE, Estimate, mean_of
from suite.statistics.reduce import completed_times_s
from suite.statistics.round_flags import flags
from suite.statistics.set_model import SetModel
from suite.statistics.speed import core_sentence, side_of, speed_of, twice_the_core
from suite.statistics.start_up import StartUp, classify, start_up
from suite.statistics.stopping_rule import relative_half_width
from suite.statistics.twins import is_twin

STYLES: Final[dict[State, str]] = {"works": "green", "failed": "red", "none": "dim", "unknown": "yellow"}
PLAIN: Final[dict[State, str]] = {"works": "yes", "failed": "NO", "none": "-", "unknown": "?"}  # without Unicode
MORE_ROUNDS: Final = 8
WITNESS: Final = "commit or post this hash with a date before you submit: it proves that no run was removed later"
MOST_WORKS: Final = 4  # more are better read on the page
OWN_TASK: Final = ("measure your own task", "OWN_TASK.md says how")


def print_what_worked(console: Console, results: Sequence[CaseResult], *, logs: Callable[[Case, int], Path]) -> None:
    """Print a mark for each part by task and library, each failed round with its logs, and speeds or what was learned.

    ``logs`` returns where the logs of a round are.
    """
    worked = what_worked(results)
    symbols = SYMBOLS if console.encoding.startswith("utf") else PLAIN
    if worked:
        table = _table("what works", justify="center", columns=("processes", *worked[0].parts))
        for work in worked:
            marks = (f"[{STYLES[state]}]{symbols[state]}[/]" for state in work.parts.values())
            table.add_row(work.name, ", ".join(map(str, work.ranks)) or "-", *marks)
        console.print(table)
        shown = dict.fromkeys(state for work in worked for state in work.parts.values())
        legend = "; ".join(f"{symbols[state]} {meaning}" for state, meaning in LEGEND.items() if state in shown)
        say(console, legend, style="dim")
    for record in (record for work in worked for record in work.failed):
        say(
            console,
            f"{symbols['failed']} {record.case.case_id} run {record.round} {record.outcome}: {record.reason}\n"
            f"  logs: {logs(record.case, record.round)}",
            style="red",
        )
    if not any(result.completed for result in results):
        return
    if only_learning(results):
        say(console, f"\n{TIMES_MEAN_NOTHING}", style="dim")
        print_learned(console, results)
    else:
        say(console, f"\nDetails. {SPEEDS_MEAN_NOTHING}", style="dim")
        print_summary(console, results)


def print_learned(console: Console, results: Sequence[CaseResult]) -> None:
    """Print a row for each case: the median over its completed runs of the reward at the end."""
    table = _table("configuration", columns=("processes", "environments", "runs", "reward at the end"))
    table.add_column("outcome", overflow="fold")
    for result in results:
        rewards = [reward for record in result.completed if (reward := last_reward(record)) is not None]
        reward = statistics.median(rewards) if rewards else None
        table.add_row(
            result.case.case_id,
            str(result.case.world_size),
            f"{result.case.num_envs_global:,}",
            f"{len(result.completed)}/{len(result.rounds)}",
            "-" if reward is None else three_digits(reward),
            _outcomes(result),
        )
    console.print(table)


def _outcomes(result: CaseResult) -> str:
    return ", ".join(sorted({record.outcome for record in result.rounds}))


def _table(first: str, *, columns: Iterable[str], justify: JustifyMethod = "right", title: str | None = None) -> Table:
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column(first, overflow="fold")
    for name in columns:
        table.add_column(name, justify=justify)
    return table


def print_summary(console: Console, results: Sequence[CaseResult]) -> None:
    """Print a row for each case: the mean time of an iteration over its rounds."""
    has_power = any(_of_gpus(result) for result in results)
    size = ("GPUs" if has_speeds(results) else "processes", "environments")
    names = (*size, "runs", "s/iteration", "frames/s", *(("W", "frames/J") if has_power else ()))
    table = _table("configuration", columns=names)
    table.add_column("outcome", overflow="fold")
    for result in results:
        case = result.case
        times_s = completed_times_s(result.rounds)
        time_s = mean_of(times_s).value if times_s else None
        table.add_row(
            case.case_id,
            case.topology,
            f"{case.num_envs_global:,}",
            f"{len(times_s)}/{len(result.rounds)}",
            "-" if time_s is None else f"{time_s:.3g}",
            "-" if time_s is None or not case.has_frames else f"{case.frames_per_iteration / time_s:,.0f}",
            *(_power_columns(result) if has_power else ()),
            _outcomes(result),
        )
    console.print(table)


def _of_gpus(result: CaseResult) -> list[TelemetrySummary]:
    telemetry = [record.telemetry for record in result.completed]
    return [summary for summary in telemetry if summary is not None and summary.gpus]


def _power_columns(result: CaseResult) -> tuple[str, str]:
    """Mean power of all GPUs together [W] and frames per joule; both are medians over the rounds."""
    summaries = _of_gpus(result)
    power_w = [summary.power_w.mean for summary in summaries if summary.power_w is not None]
    per_joule = [summary.frames_per_joule for summary in summaries if summary.frames_per_joule is not None]
    return (
        f"{statistics.median(power_w):,.0f}" if power_w else "-",
        f"{statistics.median(per_joule):,.0f}" if per_joule else "-",
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
        say(console, f"{counted(len(single), 'configuration')} with one completed run: how runs differ is unknown.")
        for result in single:
            for flag in flags(result.rounds):
                say(console, f"{result.case.case_id}: {flag}", style="yellow")


def _lines_on_rounds(result: CaseResult) -> list[str]:
    times_s = completed_times_s(result.rounds)
    mean = mean_of(times_s)
    interval, width = mean.interval, relative_half_width(mean)
    why = (result.ended_because or "").replace("round", "run")  # as it is stored, runs are rounds
    lines = [f"ended: {why}"] if why else []
    if interval and width is not None:
        lines.append(f"between {interval[0]:.4g} and {interval[1]:.4g} s/iteration at 95 % (half-width {width:.1%})")
    starts = [start_up(record) for record in result.completed]
    kinds = classify(starts)
    for kind in ("cold", "warm", None):
        chosen = [start for start, its_kind in zip(starts, kinds, strict=True) if its_kind == kind]
        if chosen:
            name = f"{kind} start" if kind else "start"
            time_s = statistics.median(start.total_s for start in chosen)
            lines.append(f"{name}: {time_s:.1f} s{_compiled(chosen)} ({len(chosen)} of {counted(len(starts), 'run')})")
    return lines + [f"flag: {flag}" for flag in flags(result.rounds)]


def _compiled(starts: Sequence[StartUp]) -> str:
    """How many kernels these starts compiled, in words. One kernel of a new size already makes a start cold."""
    counts = sorted(start.kernels_compiled for start in starts if start.kernels_compiled)
    if not counts:
        return ""
    number = str(counts[0]) if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    return f", kernels compiled: {number}"


def print_slowed_cores(console: Console, results: Sequence[CaseResult]) -> None:
    """Print how slowed cores affected the iterations, if they did."""
    completed = [record for result in results for record in result.completed]
    slowed = slowed_cores(results, fastest_probes_s(completed))
    if slowed is not None:
        say(console, slowed, style="yellow")


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
    names = ("pairs", "direct, median", "bracketed, median", "smallest", "largest", "same process")
    table = _table("configuration", columns=names, title="Rank 0 against Isaac Lab's own benchmark")
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


def print_answers(campaign: Campaign) -> None:
    """Print what a campaign of few tasks says, how sure that is, and which command makes it surer."""
    by_work = answers(campaign.results)
    if not 0 < len(by_work) <= MOST_WORKS:
        return
    for name, sentences in by_work.items():
        say(campaign.console, name, style="bold")
        for sentence in sentences:
            say(campaign.console, f"  {sentence}")
    rounds = min(len(result.completed) for result in campaign.results if result.completed)
    say(campaign.console, f"In brackets: the interval at {CONFIDENCE:.0%}.")
    if rounds < MORE_ROUNDS:
        more = f"{_command(campaign)} --repeats {MORE_ROUNDS}"
        say(campaign.console, f"More certain, with {MORE_ROUNDS} runs (finished ones count): {more}")


def answers(results: Sequence[CaseResult]) -> dict[str, list[str]]:
    """Sentences by task and library: the time of each configuration, and its ratio to the smallest one.

    ``results``: of one campaign, with repeats. Nothing of what has several nodes or completed no run.
    """
    model, by_work = SetModel.of(results), dict[str, list[CaseResult]]()
    for result in results:
        case = result.case
        if case.learns and result.completed and case.nnodes == 1 and not is_twin(case):
            name = f"{case.task}, {case.rl_library}" + ("" if case.stack == "kitless" else f", {case.stack}")
            by_work.setdefault(name, []).append(result)
    return {name: list(_of_work(own, model)) for name, own in by_work.items()}


def _of_work(results: Sequence[CaseResult], model: SetModel) -> Iterator[str]:
    first, *others = sorted(results, key=_size)
    yield f"{_frames(first)}, {counted(len(first.completed), 'run')}."
    for other in others:
        base = min((result for result in results if result.case.series == other.case.series), key=_size)
        base = first if base is other else base
        more = model.speedup(other.case, base.case)
        yield f"{_frames(other)}" + ("." if more is None else f", {_times(other, base, more)}.")
    slope = model.core_slope(first.case)
    if slope is not None and slope.interval is not None:
        value, low, high = map(twice_the_core, (slope.value, *slope.interval))
        yield core_sentence(*slope.interval, f"{value} ({low} to {high})")


def _size(result: CaseResult) -> tuple[int, int, str]:
    return result.case.world_size, result.case.num_envs_global, result.case.case_id


def _frames(result: CaseResult) -> str:
    case = result.case
    fps = mean_of(completed_times_s(result.rounds)).mapped(lambda time_s: case.frames_per_iteration / time_s)
    variant = f" ({case.case_id.rpartition('/')[2]})" if case.division == "open" else ""
    size = f"{counted(case.world_size, 'GPU')}, {counted(case.num_envs_global, 'environment')}{variant}"
    return f"{size}: {fps.value:,.0f} frames/s{_between(fps, '{:,.0f}')}"


def _times(other: CaseResult, base: CaseResult, more: Estimate) -> str:
    of = f"those of {base.case.num_envs_global:,} on {counted(base.case.world_size, 'GPU')}"
    times = f"{more.value:.3g} times {of}{_between(more, '{:.3g}')}"
    ranks = other.case.world_size / base.case.world_size
    if ranks == 1:
        return f"{times}: {speed_of(more)}"
    share = more.mapped(lambda ratio: ratio / ranks)
    side = side_of(share)
    verdict = f"{side} of 80 %" if side == "within noise" else side
    return f"{times}, {share.value:.1%} of the ideal{_between(share, '{:.1%}')}: {verdict}"


def _between(estimate: Estimate, form: str) -> str:
    return "" if estimate.interval is None else " ({} to {})".format(*map(form.format, estimate.interval))


def print_where_and_next(campaign: Campaign, page: Path | None) -> None:
    """Print how long the command took, where its files are, and what to do next."""
    console = campaign.console
    say(console, f"\nThis took {clock(time.monotonic() - campaign.began_s)}.")
    if page is not None:
        say(console, f"  page:     {page}")
    say(console, f"  results:  {campaign.out / 'cases'}")
    say(console, f"  logs:     {campaign.out / 'raw'}")
    if head := run_log.head(campaign.out):
        say(console, f"  run log:  {head[:12]} ({WITNESS})")
    say(console, "What next")
    for what, how in _next_steps(campaign):
        say(console, f"  {what + ':':<46} {how}")


def _next_steps(campaign: Campaign) -> Iterator[tuple[str, str]]:
    has_speed = has_speeds(campaign.results)
    failed = any(record.outcome != "completed" for result in campaign.results for record in result.begun)
    if failed and not has_speed:
        yield "run what failed again", f"{_command(campaign)} --retry-failed"
    has_gpus = has_speed or (campaign.device == "cuda" and only_learning(campaign.results))
    if has_gpus:
        yield "see what everything would cost", _program("plan", "--matrix", "full")
        yield "measure every task and number of GPUs", _program("bench", "--matrix", "full")
    else:
        yield "check a GPU machine and what to repair", f"{_program('env_check')}, on that machine"
        yield "take a first measurement", f"{_program('bench')}, on that machine"
        yield "measure everything", f"{_program('bench', '--matrix', 'full')}, on that machine"
    yield OWN_TASK


def _command(campaign: Campaign) -> str:
    """The command that measures the same cases again."""
    chosen = ("matrix", "series", "case_globs", "rl_libraries", "gpus", "with_packages", "out")
    return _program("bench", *as_typed(campaign.options, *chosen))


def _program(name: str, *arguments: str) -> str:
    return f"python3 -m nox -s {name}" + (f" -- {shlex.join(arguments)}" if arguments else "")
