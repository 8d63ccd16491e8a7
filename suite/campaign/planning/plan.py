"""Plan a campaign: which cases of a matrix can run here, how often, and by which commands. Starts nothing."""

import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from rich.console import Console

from suite.campaign.display.progress import clock
from suite.campaign.folder import Folder
from suite.campaign.planning.registered_task import ask, unknown_tasks, with_answers
from suite.campaign.runs import warm_up
from suite.campaign.runs.run import render
from suite.campaign.schedule import blocks_of, need_of, takes_turns
from suite.campaign.state import Campaign
from suite.errors import UsageError
from suite.files.paths import ROOT
from suite.files.wording import are, counted
from suite.install.worker import Worker, install_worker, locate_own_worker, locate_worker, require_python
from suite.launch.registry import entry_of, is_in_image, one_worker
from suite.matrix.cases import expand
from suite.matrix.catalog import Catalog
from suite.matrix.file import load_matrix, read_table
from suite.matrix.own_worker import own_worker_of
from suite.matrix.plan import plan, shell_command
from suite.matrix.resources import GPU_SHARE, UNBOUNDED, Room, gpu_minutes, time_of_block_s
from suite.matrix.selection import on_nodes_of, selected_cases, with_packages
from suite.matrix.tables import Matrix
from suite.options.command_line import say
from suite.options.options import Options, given_unused
from suite.schema.record import RULE_WORDS, WORKLOAD_WORDS, Case, Device, Environment, PlannedCase, Stack
from suite.statistics.stopping_rule import MAX_ROUNDS, Rule
from suite.statistics.twins import with_copies, with_twins

NO_SPEEDS: Final = "On a CPU a run shows what works; only a speed on a GPU counts."


def make_plan(campaign: Campaign) -> Campaign:
    """Expand the matrix, select cases, and check for each whether it can run here. Starts nothing."""
    options, matrix = campaign.options, matrix_of(campaign)
    rule = rule_of(options, matrix)
    cases = cases_of(campaign, matrix)
    stacks = {case.stack for case in cases}
    campaign = replace(campaign, stack=worker_stack(options, stacks, campaign.device, campaign.catalog))
    has_twins = matrix.a_a if options.rounds.a_a is None else options.rounds.a_a
    copied = with_copies if matrix.turns_check else list
    whole = tuple(copied(with_twins(cases) if has_twins else cases))
    timed_starts = frozenset(case.series for case in cases if case.kernel_cache == "empty")
    cases = selected_cases(
        cases, series=options.selection.series, rl_library=options.selection.rl_libraries, gpus=options.selection.gpus
    )
    if has_twins:
        cases = with_twins(cases)  # after the selection, so that every campaign has them
    # Twins and copies have ids of their own.
    cases = selected_cases(copied(cases), case_glob=options.selection.case_globs)
    planned = planned_cases(campaign, cases, rounds=rule.rounds)
    feasible = [item.case for item in planned if not item.infeasible]
    warm_ups = planned_cases(campaign, warm_up.warm_ups(feasible), rounds=1) if matrix.warm_up else ()
    return replace(campaign, planned=planned, whole=whole, timed_starts=timed_starts, warm_ups=warm_ups, rule=rule)


def matrix_of(campaign: Campaign) -> Matrix:
    """The matrix, with the ranks that a node of this machine has and the versions of packages that were chosen."""
    options, resources = campaign.options, campaign.resources
    all_ranks = resources.gpus_per_node if campaign.device == "cuda" else resources.cpus_per_node
    matrix = on_nodes_of(load_matrix(options.selection.matrix, campaign.catalog), all_ranks)
    return with_packages(matrix, options.setup.with_packages)


def cases_of(campaign: Campaign, matrix: Matrix) -> list[Case]:
    setup = campaign.options.setup
    return expand(
        matrix, campaign.catalog, device=campaign.device, stack=setup.stack, assets=setup.assets, seed=setup.seed
    )


def planned_cases(campaign: Campaign, cases: Sequence[Case], *, rounds: int) -> tuple[PlannedCase, ...]:
    """Check for each case whether it can run here, and what it costs."""
    options = campaign.options
    is_here = not entry_of(options).elsewhere and campaign.resources is not UNBOUNDED
    planned = plan(
        cases,
        resources=campaign.resources,
        takes_turns=takes_turns(campaign),
        one_worker=one_worker(options),
        brings_python=options.setup.worker_python is not None,
        available_stacks=_stacks(campaign),
        rounds=rounds,
        catalog=campaign.catalog,
        room=Room.of(campaign.machine) if is_here else None,
    )
    return tuple(planned)


def learn_tasks(campaign: Campaign) -> Campaign:
    """Ask the worker about tasks that the catalog does not have. Only this installs the worker before the plan."""
    options, catalog = campaign.options, campaign.catalog
    series = read_table(options.selection.matrix).series
    unknown = unknown_tasks([table.task for table in series], catalog)
    if not unknown:
        return campaign
    stacks = {stack for table in series for stack in table.stacks}
    stack = worker_stack(options, stacks, campaign.device, catalog)

    say(campaign.console, f"Asking the worker about tasks that labscale's catalog does not have: {', '.join(unknown)}")
    worker = install_worker(
        # Isaac Sim is not installed by labscale; the other workers register the same tasks.
        stack="kitless" if stack == "isaacsim" and options.setup.worker_python is None else stack,
        setup=options.setup,
        on_message=partial(say, campaign.console),
    )
    keep = options.setup.worker_python is None and "PYTHONPATH" not in os.environ
    answers = ask(unknown, python=worker.python, project_root=ROOT, catalog=catalog, keep=keep)
    return replace(campaign, catalog=with_answers(catalog, answers, out=campaign.out))


def rule_of(options: Options, matrix: Matrix) -> Rule:
    """How many rounds a case gets: from the options, else from the matrix. ``--repeats`` alone is an exact number.

    Raises:
        UsageError: options contradict each other, or the matrix has no times for them.
    """
    if matrix.only_learning and (flags := given_unused(options, "only_learning")):
        raise UsageError(
            f"With the matrix {matrix.name} only what is learned counts, and none of its times means anything: "
            f"{', '.join(flags)} cannot be used. Take another --matrix, or leave "
            f"{'it' if len(flags) == 1 else 'them'} out; --repeats adds runs."
        )
    rounds = options.rounds.repeats or matrix.rounds
    precision = options.rounds.target_precision or (None if options.rounds.repeats else matrix.precision)
    max_rounds = options.rounds.max_rounds or matrix.max_rounds or MAX_ROUNDS
    if precision is None and (options.rounds.max_rounds or options.rounds.budget_minutes):
        raise UsageError(
            "--max-rounds and --budget-minutes limit the runs that --target-precision adds, which is not given: "
            f"every configuration has exactly {counted(rounds, 'run')}. Add --target-precision, or leave them out."
        )
    if precision is not None and max_rounds < rounds:
        raise UsageError(f"--max-rounds is {max_rounds}, allowed is {rounds} or more: that many runs always run.")
    budget_s = None if options.rounds.budget_minutes is None else 60 * options.rounds.budget_minutes
    return Rule(rounds=rounds, precision=precision, max_rounds=max_rounds, budget_s=budget_s)


def worker_stack(options: Options, stacks: Collection[Stack], device: Device, catalog: Catalog) -> Stack:
    """The stack of the worker that a campaign needs. The ovphysx worker also runs kitless, so it serves both.

    A container image has one stack, which the user chooses.
    """
    if options.setup.stack is not None or not entry_of(options).installs_workers:
        return options.setup.stack or "kitless"
    runnable = {stack for stack in stacks if stack in catalog.stacks and device in catalog.stacks[stack].devices}
    return "ovphysx" if "ovphysx" in runnable else "kitless"


def _stacks(campaign: Campaign) -> tuple[Stack, ...]:
    """The stacks that the worker of this campaign can run; Isaac Sim only if the user installed it."""
    options = campaign.options
    if campaign.stack == "ovphysx":
        return ("ovphysx", "kitless")
    installable = campaign.stack != "isaacsim" or options.setup.worker_python is not None or is_in_image(options)
    return (campaign.stack,) if installable else ()


def show_plan(campaign: Campaign) -> Campaign:
    """Print the plan with the commands that ``bench`` would run. The worker need not be installed.

    Raises:
        WorkerEnvironmentError: the Python of ``--worker-python`` does not exist, so no case could run.
    """
    if campaign.options.setup.worker_python is not None:
        require_python(campaign.options.setup.worker_python)
    worker = locate_worker(stack=campaign.stack, setup=campaign.options.setup)
    folder, python_path = Folder(root=campaign.out), os.environ.get("PYTHONPATH")

    def worker_of(case: Case) -> Worker:
        own = own_worker_of(case)
        return locate_own_worker(own, worker, setup=campaign.options.setup) if own else worker

    launches = (
        render(campaign, worker_of(item.case), folder.run_dir(item.case, 0), item.case, 0, python_path=python_path)
        for item in campaign.planned
    )
    commands = [shell_command(launch) if launch.case.nnodes == 1 else None for launch in launches]
    blocks = blocks_of(campaign, [item for item in campaign.planned if not item.infeasible])
    print_plan(campaign.console, campaign.planned, commands, campaign.machine, blocks)
    if takes_turns(campaign):
        _print_blocks(campaign, blocks)
    needed = {warm_up.kernels_of(item.case) for item in campaign.planned if warm_up.is_warmed(item.case)}
    for item in campaign.warm_ups:
        if warm_up.is_missing(worker_of(item.case).cache_dir, item.case, campaign.machine, needed):
            cost = "" if item.estimated_wall_s is None else f"about {clock(item.estimated_wall_s)} and "
            say(
                campaign.console,
                f"First {warm_up.in_words(item.case)}: warm-up, not counted, {cost}the time that its kernels "
                "take to compile.",
            )
    print_rule(campaign.console, campaign.rule)
    return campaign


def print_plan(
    console: Console,
    planned: Sequence[PlannedCase],
    commands: Sequence[str | None],
    machine: Environment,
    blocks: Sequence[Sequence[PlannedCase]],
) -> None:
    """Print each case with its size, its cost, and the command that would run it, or why it cannot run here.

    ``blocks`` has those that can.
    """
    gpus = ", ".join(sorted({gpu.name for gpu in machine.gpus}))
    here = f"{len(machine.gpus)} x {gpus}" if gpus else f"no GPU, {machine.num_cpus} CPU cores"
    say(console, f"{counted(len(planned), 'configuration')} on this machine ({here})\n")
    for item, command in zip(planned, commands, strict=True):
        case = item.case
        seeds = ", each with seeds of its own" if case.seed_per_round and item.rounds > 1 else ""
        nodes = f" on {case.nnodes} nodes" if case.nnodes > 1 else ""
        where = "in one of them" if case.is_pipeline else "a process"
        if case.learns or case.is_pipeline:
            learning = (
                f"minibatch {case.minibatch_size:,} a process ({case.global_minibatch_size:,} in total), "
                f"{case.optimiser_steps} optimiser steps an iteration, {RULE_WORDS[case.minibatch_rule]}"
            )
        else:
            learning = f"nothing is trained: {WORKLOAD_WORDS[case.workload]}"
        say(console, case.case_id, style="bold")
        say(
            console,
            f"  {case.task}, {counted(case.num_processes, 'process')}{nodes}, {counted(case.num_envs, 'environment')} "
            f"{where}, {case.num_envs_global:,} in total, {case.iterations} iterations, "
            f"{counted(item.rounds, 'run')}{seeds}\n  {learning}",
        )
        if item.infeasible:
            console.print("  [yellow]not here:[/] ", end="")
            say(console, item.infeasible)
        say(console, f"  {_cost_in_words(item)}")
        if command is not None:
            say(console, f"  {command}", style="dim")
    feasible = [item for item in planned if not item.infeasible]
    say(console, f"\n{counted(len(feasible), 'configuration')} can run here: {_total(blocks)}.")
    if len(feasible) < len(planned):
        say(console, f"All {len(planned)}: {_total([[item] for item in planned])}.")
    if feasible and not any(item.case.device == "cuda" or item.case.only_learning for item in feasible):
        say(console, NO_SPEEDS)
    if any(
        item.case.device == "cuda" and (item.case.only_learning or item.case.trainings_per_gpu > 1) for item in planned
    ):
        say(
            console,
            f"A process that shares a GPU is taken to need it for {GPU_SHARE:.0%} of its time, the most that Ant and "
            "Cartpole need with rl_games on an H200 without MPS; if it renders, for all of its time. With MPS a matrix "
            "of learning took half the time; with rsl_rl it can be more.",
        )


def _print_blocks(campaign: Campaign, blocks: Sequence[Sequence[PlannedCase]]) -> None:
    """Print which rounds start together, with their memory by the catalog, and what that saves."""
    console = campaign.console
    needs = {item.case.case_id: need_of(campaign, item.case, None) for block in blocks for item in block}
    together = [block for block in blocks if len(block) > 1]
    if not together:
        return
    only_learning = all(item.case.only_learning for block in together for item in block)
    how = "train at the same time, since only what they learn counts" if only_learning else "are measured in turns"
    say(console, f"\nIn {counted(len(together), 'block')} the runs start together and {how}:")
    for block in together:
        case_ids = [item.case.case_id for item in block]
        block_needs = [need for case_id in case_ids if (need := needs[case_id]) is not None]
        gpus_gb = [need.gpu_gb for need in block_needs if need.gpu_gb is not None]
        of_gpu = f"{sum(gpus_gb):.0f} GB of a GPU, " if gpus_gb else ""
        memory = f"{of_gpu}{sum(need.host_gb for need in block_needs):.0f} GB of the host"
        say(console, f"  {', '.join(case_ids)}")
        say(console, f"    at most {memory}{_saved(block)}", style="dim")
    if unknown := [case_id for case_id, need in needs.items() if need is None]:
        say(console, f"  First alone, as nobody measured their memory: {', '.join(unknown)}", style="dim")


def _saved(block: Sequence[PlannedCase]) -> str:
    block_s, minutes, costs = time_of_block_s(block), gpu_minutes(block), _known_costs([[item] for item in block])
    if block_s is None or len(costs) < len(block):
        return ""
    alone_s, alone = (sum(column) / block[0].rounds for column in zip(*costs, strict=True))
    gpu = f", {minutes:.1f} GPU-minutes, {alone:.1f} one after another" if minutes else ""
    return f"; about {clock(block_s)} each time, {clock(alone_s)} one after another{gpu}"


def _known_costs(blocks: Sequence[Sequence[PlannedCase]]) -> list[tuple[float, float]]:
    """Wall time [s] and GPU-minutes of all rounds, for each block whose cost is known. The GPUs are held for all."""
    return [
        (block[0].rounds * block_s, block[0].rounds * minutes)
        for block in blocks
        if (block_s := time_of_block_s(block)) is not None and (minutes := gpu_minutes(block)) is not None
    ]


def _cost_in_words(item: PlannedCase) -> str:
    minutes = gpu_minutes([item])
    if minutes is None or item.estimated_wall_s is None:
        return "cost unknown"
    runs = counted(item.rounds, "run")
    gpu = f", {item.rounds * minutes:.1f} GPU-minutes for {runs}" if item.case.device == "cuda" else ""
    cold = ", and the time that its kernels take to compile in every run" if item.case.kernel_cache == "empty" else ""
    return f"about {clock(item.estimated_wall_s)} a run{gpu}{cold}"


def _total(blocks: Sequence[Sequence[PlannedCase]]) -> str:
    """The cost of all rounds; the least that it can be if that of a case is unknown."""
    if not blocks:
        return "nothing to do"
    known = [[item for item in block if item.estimated_wall_s is not None] for block in blocks]
    costs, unknown = _known_costs([block for block in known if block]), sum(map(len, blocks)) - sum(map(len, known))
    if not costs:
        return f"{unknown} of unknown cost"
    wall_s, minutes = (sum(column) for column in zip(*costs, strict=True))
    gpu = f", {counted(max(1, round(minutes)), 'GPU-minute')}" if minutes else ""
    about, rest = ("at least", f", and {unknown} of unknown cost") if unknown else ("about", "")
    how = "with runs that start together" if any(len(block) > 1 for block in blocks) else "one after another"
    return f"{about} {clock(wall_s)} {how}{gpu}{rest}"


def print_rule(console: Console, rule: Rule) -> None:
    """Print when a case has enough rounds, unless that is a fixed number."""
    if rule.precision is None:
        return
    budget = (
        "" if rule.budget_s is None else f", or {counted(rule.budget_s / 60, 'minute')} {are(rule.budget_s / 60)} over"
    )
    say(
        console,
        f"After {counted(rule.rounds, 'run')} a configuration goes on until the half-width of the 95 % interval of its"
        " ratio to the baseline of its series"
        f" is at most {100 * rule.precision:g} %, or it has {counted(rule.most_rounds, 'run')}{budget}.",
    )
