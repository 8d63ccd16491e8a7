"""A campaign from options to results: the program is the tuples of steps at the end of this file."""

import hashlib
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console

from suite import a_a, environment, runtime, upstream
from suite.campaign_state import Campaign
from suite.catalog import load_catalog
from suite.env_check.report import summarised
from suite.env_check.table import print_faults
from suite.errors import EnvironmentNotFit, ReportError, RunsFailed, UsageError
from suite.folder import Folder, opened
from suite.launch.by_hand import node_commands
from suite.launch.watch import prepare
from suite.manifests import write_manifests
from suite.matrix import Matrix, expand, load_matrix, select
from suite.options import ROOT, Options
from suite.plan import plan, shell_command
from suite.progress import Reporter
from suite.provision import Worker, locate_worker
from suite.repeats import MAX_ROUNDS, Rule
from suite.rounds import disk_errors, figures, render, run_round, set_failures_aside, store_if_complete
from suite.schedule import known_rounds, rounds_to_run
from suite.schema import PlannedCase, Stack
from suite.summary import print_agreement, print_noise, print_plan, print_rounds, print_rule, print_summary


def start(options: Options, console: Console) -> Campaign:
    """Look at the machine: a GPU is used when there is one, unless the user says otherwise."""
    machine = environment.capture(host_label=options.host_label)
    capacity = runtime.capacity(options, machine)
    device = options.device or ("cuda" if capacity.gpus_per_node else "cpu")
    return Campaign(options=options, console=console, machine=machine, device=device, capacity=capacity)


def make_plan(campaign: Campaign) -> Campaign:
    """Expand the matrix, narrow it, and judge every case on this machine. Starts nothing."""
    options, catalog = campaign.options, load_catalog()
    matrix = load_matrix(options.matrix, catalog)
    rule = rule_of(options, matrix)
    cases = expand(
        matrix, catalog, device=campaign.device, stack=options.stack, assets=options.assets, seed=options.seed
    )
    if matrix.a_a if options.a_a is None else options.a_a:
        cases = a_a.with_twins(cases)
    cases = select(
        cases,
        series=options.series,
        case_glob=options.case_globs,
        rl_library=options.rl_libraries,
        gpus=options.gpus,
    )
    planned = plan(
        cases,
        gpus_available=campaign.capacity.gpus_per_node,
        cpus_available=campaign.capacity.cpus_per_node,
        nnodes_available=campaign.capacity.nnodes,
        device=campaign.device,
        available_stacks=_stacks(campaign),
        rounds=rule.rounds,
        catalog=catalog,
    )
    return replace(campaign, planned=tuple(planned), rule=rule)


def rule_of(options: Options, matrix: Matrix) -> Rule:
    """How many rounds a case gets: what the options say, else the matrix. ``--repeats`` alone is an exact number.

    Raises:
        UsageError: a limit without a target, or a limit below the rounds that are always run.
    """
    rounds = options.repeats or matrix.rounds
    precision = options.target_precision or (None if options.repeats else matrix.precision)
    max_rounds = options.max_rounds or matrix.max_rounds or MAX_ROUNDS
    if precision is None and (options.max_rounds or options.budget_minutes):
        raise UsageError(
            "--max-rounds and --budget-minutes limit the search for a precision, and none is asked for: every case has "
            f"exactly {rounds} rounds. Add --target-precision, or leave them out."
        )
    if precision is not None and max_rounds < rounds:
        raise UsageError(f"--max-rounds is {max_rounds}, allowed is {rounds} or more: so many rounds are always run.")
    budget_s = None if options.budget_minutes is None else 60 * options.budget_minutes
    return Rule(rounds=rounds, precision=precision, max_rounds=max_rounds, budget_s=budget_s)


def _stacks(campaign: Campaign) -> tuple[Stack, ...]:
    """Return what a worker of this campaign can run: one stack, and Isaac Sim only where the user brings it."""
    options = campaign.options
    in_image = options.launcher == "container" or options.render is not None
    installable = campaign.stack != "isaacsim" or options.worker_python is not None or in_image
    return (campaign.stack,) if installable else ()


def show_plan(campaign: Campaign) -> Campaign:
    """Print the plan with the commands that ``bench`` would run; the worker need not be installed for that."""
    worker = locate_worker(project_root=ROOT, stack=campaign.stack, worker_python=campaign.options.worker_python)
    folder = Folder(root=campaign.out)
    python_path = os.environ.get("PYTHONPATH")
    commands = [
        shell_command(render(campaign, worker, folder, item.case, 0, python_path=python_path))
        if item.case.nnodes == 1
        else _by_hand(campaign, worker, folder, item)
        for item in campaign.planned
    ]
    print_plan(campaign.console, campaign.planned, commands, campaign.machine)
    print_rule(campaign.console, campaign.rule)
    return campaign


def _by_hand(campaign: Campaign, worker: Worker, folder: Folder, item: PlannedCase) -> str | None:
    """What each node runs for each round of a case, when that was asked for; the rounds' directories are then made."""
    if not campaign.options.node_commands:
        return None
    lines: list[str] = []
    for index in range(item.rounds):
        launch = render(campaign, worker, folder, item.case, index, python_path=os.environ.get("PYTHONPATH"))
        if not Path(launch.run_dir).exists():
            prepare(Path(launch.run_dir), item.case)
        lines += node_commands(
            launch, campaign.options.nodes, rounds=item.rounds, suite_python=sys.executable, project_root=str(ROOT)
        )
    return "\n  ".join(lines)


def provision(campaign: Campaign) -> Campaign:
    """Install the worker environment and build the assets, find the image, or check what the user brought."""
    place = runtime.provision(
        campaign.options,
        stack=campaign.stack,
        device=campaign.device,
        on_message=lambda message: campaign.console.print(message, highlight=False, markup=False, soft_wrap=True),
        out=campaign.out,
        num_gpus=max((item.case.nproc_per_node for item in campaign.planned if not item.infeasible), default=1),
    )
    machine = replace(
        place.machine or campaign.machine,
        host_label=campaign.options.host_label,
        worker_pins_sha256=place.worker.pins_sha256,
        asset_sha256=place.worker.asset_sha256,
    )
    return replace(campaign, runtime=place, machine=machine)


def check_environment(campaign: Campaign) -> Campaign:
    """Run env_check and keep its result with every record.

    Raises:
        EnvironmentNotFit: the stack cannot run here, and the user did not say to try all the same.
    """
    if campaign.runtime is None:
        raise AssertionError("provision comes before check_environment")
    report = campaign.runtime.check()
    print_faults(campaign.console, report)
    if report.failures and not campaign.options.ignore_env_check:
        faults = ", ".join(f"{check.name}: {check.fault}" for check in report.failures)
        raise EnvironmentNotFit(
            f"The stack {campaign.stack} cannot run here ({faults}). Repair what is said above, see all of it with "
            f"nox -s env_check -- --stack {campaign.stack}, or try all the same with --ignore-env-check."
        )
    return replace(campaign, machine=replace(campaign.machine, checks=summarised(report)))


def run_all(campaign: Campaign) -> Campaign:
    """Run every round that is wanted and not finished, round by round over all cases, and store each decided case."""
    campaign = replace(campaign, started_s=time.monotonic())
    with opened(campaign.out, identity(campaign)) as folder:
        if campaign.options.retry_failed:
            set_failures_aside(campaign, folder)
        known = known_rounds(campaign, folder)
        _say_what_is_left(campaign, folder, len(known))
        reporter = Reporter(campaign.console, list(campaign.planned), [item.case for item, _ in known])
        for item, round_index in rounds_to_run(campaign, folder):
            if not reporter.waiting:
                reporter.expect(item.case)
            with disk_errors(folder.root):
                record = run_round(campaign, folder, reporter, item.case, round_index)
                reporter.ended(record, figures(record))
                store_if_complete(campaign, folder, item)
        with disk_errors(folder.root):
            results = tuple(store_if_complete(campaign, folder, item) for item in campaign.planned)
    return replace(campaign, results=tuple(result for result in results if result))


def write_scripts(campaign: Campaign) -> Campaign:
    """Write the script of every round that is not there yet, and say how each is submitted."""
    if campaign.runtime is None or campaign.runtime.write_script is None:
        raise UsageError(f"--render-only needs --launcher slurm, got {campaign.options.launcher}.")
    with opened(campaign.out, identity(campaign)) as folder:
        for item, round_index in known_rounds(campaign, folder):
            launch = render(
                campaign,
                campaign.runtime.worker,
                folder,
                item.case,
                round_index,
                python_path=campaign.runtime.python_path,
            )
            if not campaign.runtime.is_submitted(Path(launch.run_dir)):
                script = campaign.runtime.write_script(launch)
                campaign.console.print(f"sbatch {script}", highlight=False, markup=False, soft_wrap=True)
    return campaign


def identity(campaign: Campaign) -> dict[str, object]:
    """What must be equal for results to share a folder; narrowing options are not in it, so a campaign can grow."""
    matrix_text = "\n".join(repr(item.case) for item in make_plan(_whole(campaign)).planned)
    machine = campaign.machine
    return {
        "matrix": campaign.options.matrix,
        "matrix_sha256": hashlib.sha256(matrix_text.encode()).hexdigest(),
        "rounds": campaign.options.repeats,
        "precision": campaign.rule.precision,
        "max_rounds": None if campaign.rule.precision is None else campaign.rule.max_rounds,
        "device": campaign.device,
        "stack": campaign.stack,
        "assets": campaign.options.assets,
        "asset_sha256": machine.asset_sha256,
        "worker_pins_sha256": machine.worker_pins_sha256,
        "cpu_model": machine.cpu_model,
        "gpus": [gpu.name for gpu in machine.gpus],
        "driver_version": machine.driver_version,
        "host_label": machine.host_label,
        "image_digest": campaign.runtime.image_digest if campaign.runtime else None,
    }


def _whole(campaign: Campaign) -> Campaign:
    whole = replace(campaign.options, series=(), case_globs=(), rl_libraries=(), gpus=())
    return replace(campaign, options=whole)


def _say_what_is_left(campaign: Campaign, folder: Folder, todo: int) -> None:
    rounds = sum(item.rounds for item in campaign.planned if not item.infeasible)
    infeasible = sum(1 for item in campaign.planned if item.infeasible)
    done = f", {rounds - todo} finished earlier and kept" if rounds > todo else ""
    skipped = f", {infeasible} cases are skipped here (the plan says why)" if infeasible else ""
    campaign.console.print(f"{todo} runs to do{done}{skipped}. Results: {folder.root}", highlight=False, markup=False)
    print_rule(campaign.console, campaign.rule)


def summarise(campaign: Campaign) -> Campaign:
    """Print what came out and, where upstream ran too, how the two clocks compare."""
    print_summary(campaign.console, campaign.results)
    print_rounds(campaign.console, campaign.results)
    if pairs := a_a.twin_pairs(campaign.results):
        a_a.write_noise(pairs, campaign.out / "noise.json")
        print_noise(campaign.console, pairs)
    if campaign.options.upstream:
        folder = Folder(root=campaign.out)
        beside = [
            pair
            for result in campaign.results
            for record in result.completed
            if (pair := upstream.read_pair(record.case, record.round, folder.run_dir(record.case, record.round)))
        ]
        upstream.write_pairs(beside, campaign.out / "upstream.json")
        print_agreement(campaign.console, beside)
    return campaign


def build_report(campaign: Campaign) -> Campaign:
    """Build the HTML page in a process of its own, where the report's packages are installed."""
    if not campaign.options.with_report:
        return campaign
    command = [
        sys.executable,
        "-m",
        "reports.build",
        str(campaign.out / "cases"),
        "--out",
        str(campaign.out / "report"),
    ]
    if importlib.util.find_spec("altair") is None:
        campaign.console.print(
            f"No report: its packages are not installed here. Copy {campaign.out} to a machine with them and run\n"
            f"  nox -s report -- {campaign.out}",
            highlight=False,
            markup=False,
        )
        return campaign
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ReportError(
            f"The results are stored, but their page could not be built:\n{done.stdout}{done.stderr}\n"
            f"Try again with: nox -s report -- {campaign.out}"
        )
    campaign.console.print(
        f"Report: {campaign.out / 'report' / 'index.html'}", highlight=False, markup=False, soft_wrap=True
    )
    return campaign


def judge(campaign: Campaign) -> Campaign:
    """End with an error when a run failed, so that scripts notice.

    Raises:
        RunsFailed: at least one round neither completed nor was skipped.
    """
    failed = [
        f"{record.case.case_id} round {record.round}: {record.outcome}: {record.reason}"
        for result in campaign.results
        for record in result.rounds
        if record.outcome not in ("completed", "skipped")
    ]
    if failed:
        raise RunsFailed(
            f"{len(failed)} runs did not complete:\n  " + "\n  ".join(failed) + "\nTheir logs are below "
            f"{campaign.out / 'raw'}. Give them another attempt with --retry-failed."
        )
    return campaign


Step = Callable[[Campaign], Campaign]
PLAN: Final[tuple[Step, ...]] = (make_plan, show_plan)
MANIFESTS: Final[tuple[Step, ...]] = (make_plan, write_manifests)
RENDER: Final[tuple[Step, ...]] = (make_plan, provision, write_scripts)
BENCH: Final[tuple[Step, ...]] = (
    make_plan,
    provision,
    check_environment,
    run_all,
    summarise,
    build_report,
    judge,
)


def execute(steps: tuple[Step, ...], options: Options, console: Console) -> Campaign:
    campaign = start(options, console)
    for step in steps:
        campaign = step(campaign)
    return campaign
