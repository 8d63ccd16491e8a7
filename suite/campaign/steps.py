"""Run a campaign from options to results. The tuples of steps at the end of this file are the programs."""

import importlib.util
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from rich.console import Console

from suite.campaign import cases
from suite.campaign.capacity import find_capacity
from suite.campaign.display.results import (
    print_agreement,
    print_answers,
    print_rounds,
    print_slowed_cores,
    print_summary,
    print_what_worked,
    print_where_and_next,
)
from suite.campaign.folder import Folder, identity, opened, refuse_other_options
from suite.campaign.planning.manifests import write_manifests
from suite.campaign.planning.plan import learn_tasks, make_plan, print_rule, show_plan
from suite.campaign.runs import uncounted, upstream, warm_up
from suite.campaign.runs.rounds import run_planned
from suite.campaign.runs.run import machine_with, render
from suite.campaign.schedule import known_rounds
from suite.campaign.state import Campaign
from suite.env_check.display import print_faults
from suite.env_check.report import summarised
from suite.errors import EnvironmentNotFit, ReportError, RunsFailed, UsageError
from suite.external import parent_death
from suite.external.machine import capture, cores_in_order, why_not_submitted
from suite.files.input_file import fault_of_path
from suite.files.paths import ROOT
from suite.files.wording import counted
from suite.launch import registry
from suite.launch.contract import Asked
from suite.matrix.own_worker import own_worker_of
from suite.matrix.resources import UNBOUNDED, Cores, cores_of_gpus
from suite.options.command_line import say
from suite.options.options import Options
from suite.records.worked import has_speeds
from suite.schema.record import Device, Environment


def start(options: Options, console: Console) -> Campaign:
    """Look at the machine. GPUs are used if there are any, unless the user chooses the device.

    Raises:
        UsageError: options contradict each other, or the path of the results folder has invalid characters.
    """
    machine = capture(host_label=options.results.host_label, out=options.results.out)
    resources = registry.resources(options, machine)
    device = options.setup.device or ("cuda" if resources.gpus_per_node else "cpu")
    is_measured = device == "cuda" and resources.gpus_per_node < UNBOUNDED.gpus_per_node
    smallest = "first" if is_measured else "smoke"  # which shows what works
    options = replace(options, selection=replace(options.selection, matrix=options.selection.matrix or smallest))
    begun = Campaign(
        options=options,
        console=console,
        machine=machine,
        device=device,
        resources=resources,
        cores_of_gpus=_cores_of_gpus(options, machine, device),
    )
    if fault := fault_of_path(str(begun.out)):  # includes the current folder, or that of the checkout
        raise UsageError(f"The results folder would be {str(begun.out)!r}, which {fault}. Choose another with --out.")
    return begun


def _cores_of_gpus(options: Options, machine: Environment, device: Device) -> tuple[Cores, ...]:
    """The cores of a rank on each GPU: the same in rounds on one GPU and on several, so that they are comparable."""
    if device == "cpu" or options.search.capacity or not registry.entry_of(options).runs_here:
        return ()
    return cores_of_gpus(num_gpus=len(machine.gpus), cores=cores_in_order(), num_cpus=machine.num_cpus or 1)


def provision(campaign: Campaign) -> Campaign:
    """Install the worker environments and build the assets, find the image, or check what the user brought."""
    refuse_other_options(campaign)  # now, because later it would cost an installation, and Slurm's nodes write there
    here = [item.case for item in campaign.planned if not item.infeasible]
    place = registry.runtime_of(
        Asked(
            options=campaign.options,
            stack=campaign.stack,
            device=campaign.device,
            say=partial(say, campaign.console),
            out=campaign.out,
            num_gpus=max((case.gpus_per_node for case in here), default=1),
            own_workers=tuple(dict.fromkeys(own for case in here if (own := own_worker_of(case)))),
        )
    )
    machine = machine_with(place.machine or campaign.machine, place.worker)
    machine = replace(machine, host_label=campaign.options.results.host_label)
    workers = (place.worker, *place.own_workers.values())
    sources = campaign.sources.with_workers(worker.python for worker in workers)
    return replace(campaign, runtime=place, machine=machine, sources=sources)


def check_environment(campaign: Campaign) -> Campaign:
    """Run env_check, and store its result with every record. Raises EnvironmentNotFit if the stack cannot run."""
    report = campaign.provided.check()
    print_faults(campaign.console, report)
    if report.failures and not campaign.options.place.ignore_env_check:
        faults = ", ".join(f"{check.name}: {check.fault}" for check in report.failures)
        raise EnvironmentNotFit(
            f"The stack {campaign.stack} cannot run here ({faults}). Repair the faults above, see all checks with "
            f"nox -s env_check -- --stack {campaign.stack}, or run anyway with --ignore-env-check."
        )
    return replace(campaign, machine=replace(campaign.machine, checks=summarised(report)))


def run_all(campaign: Campaign) -> Campaign:
    """Run every round that the plan still needs, and store each case with its last round."""
    campaign = replace(campaign, started_s=time.monotonic())
    with opened(campaign.out, identity(campaign)) as folder:
        cases.set_failures_aside(campaign, folder)
        cases.require_raw(campaign, folder)
        cases.note_plan(campaign, folder)
        _say_what_is_left(campaign, folder, len(known_rounds(campaign, folder)))
        warm_up.run_warm_ups(campaign, folder)
        return replace(campaign, results=run_planned(campaign, folder))


def write_scripts(campaign: Campaign) -> Campaign:
    """Write the script of every round without a record, and print how to submit each."""
    runtime = campaign.provided
    if runtime.write_script is None:
        raise AssertionError("provision checks the launcher")
    with opened(campaign.out, identity(campaign)) as folder:
        cases.require_raw(campaign, folder)
        for item, round_index in known_rounds(campaign, folder):
            case, run_dir = item.case, folder.run_dir(item.case, round_index)
            if runtime.is_submitted(run_dir):
                continue
            worker = runtime.worker_of(case)
            launch = render(campaign, worker, run_dir, case, round_index, python_path=runtime.python_path)
            say(campaign.console, f"sbatch {shlex.quote(str(runtime.write_script(launch)))}")
    return campaign


def _say_what_is_left(campaign: Campaign, folder: Folder, todo: int) -> None:
    rounds = sum(item.rounds for item in campaign.planned if not item.infeasible)
    infeasible = sum(1 for item in campaign.planned if item.infeasible)
    done = f", {rounds - todo} finished earlier and kept" if rounds > todo else ""
    skipped = f", {counted(infeasible, 'configuration')} skipped here (the plan says why)" if infeasible else ""
    say(campaign.console, f"{counted(todo, 'run')} to do{done}{skipped}. Results: {folder.root}")
    if campaign.device == "cuda" and (why := why_not_submitted(campaign.machine)):
        say(campaign.console, why)
    print_rule(campaign.console, campaign.rule)


def print_results(campaign: Campaign) -> Campaign:
    """Print the results, or what worked if they have no speeds; with ``--upstream`` also how the clocks compare."""
    console, results, has_speed = campaign.console, campaign.results, has_speeds(campaign.results)
    if has_speed:
        print_summary(console, results)
        print_rounds(console, results)
        print_slowed_cores(console, results)
    else:
        print_what_worked(console, results, logs=partial(warm_up.log_folder, campaign))
    pairs = upstream.write_pairs(Folder(root=campaign.out))
    if campaign.options.rounds.upstream:
        print_agreement(console, pairs)
    if has_speed:
        print_answers(campaign)
    return campaign


def build_report(campaign: Campaign) -> Campaign:
    """Build the HTML page, if that is asked for, and print where everything is."""
    page, fault = _built_page(campaign) if campaign.options.results.with_report else (None, None)
    print_where_and_next(campaign, page)
    return replace(campaign, report_fault=fault)


def _built_page(campaign: Campaign) -> tuple[Path | None, str | None]:
    """Build the page in a process of its own; return its path, or why it could not be built."""
    folder, again = campaign.out / "report", f"nox -s report -- {shlex.quote(str(campaign.out))}"
    if importlib.util.find_spec("altair") is None:
        say(
            campaign.console,
            f"No report: its packages are not installed here. Copy {campaign.out} to a machine with them and run\n"
            f"  {again}",
        )
        return None, None
    command = [sys.executable, "-m", "reports", "report", str(campaign.out / "cases"), "--out", str(folder)]
    done = parent_death.run(command, cwd=ROOT)
    if done.returncode == 0:
        return folder / "index.html", None
    elsewhere = " --out OTHER, a folder that does not exist yet" if folder.exists() else ""
    return None, (
        f"The results are stored, but their page could not be built:\n{done.stdout}{done.stderr}\n"
        f"Try again with: {again}{elsewhere}"
    )


def judge(campaign: Campaign) -> Campaign:
    """End with an error if a run failed, so that scripts notice.

    Raises:
        RunsFailed: at least one round neither completed nor was skipped.
        ReportError: every run is fine, but the page could not be built.
    """
    # A capacity search runs out of memory on purpose.
    expected = ("completed", "skipped", *(("oom",) if campaign.options.search.capacity else ()))
    failed = [
        f"{record.case.case_id} run {record.round}: {record.outcome}: {record.reason}"
        for result in campaign.results
        for record in result.rounds
        if record.outcome not in expected
    ]
    if failed:
        raise RunsFailed(
            f"{counted(len(failed), 'run')} did not complete:\n  " + "\n  ".join(failed) + "\nTheir logs are below "
            f"{campaign.out / 'raw'}. Run them again with --retry-failed."
            + (f"\n{campaign.report_fault}" if campaign.report_fault else "")
        )
    if campaign.report_fault:
        raise ReportError(campaign.report_fault)
    return campaign


Step = Callable[[Campaign], Campaign]
PLAN: Final[tuple[Step, ...]] = (learn_tasks, make_plan, show_plan)
MANIFESTS: Final[tuple[Step, ...]] = (learn_tasks, make_plan, write_manifests)
RENDER: Final[tuple[Step, ...]] = (learn_tasks, make_plan, provision, write_scripts)
BENCH: Final[tuple[Step, ...]] = (
    uncounted.check_tools,
    learn_tasks,
    make_plan,
    provision,
    check_environment,
    run_all,
    uncounted.profile_all,
    uncounted.film_all,
    print_results,
    build_report,
    uncounted.tell_unfilmed,
    judge,
)
CAPACITY: Final[tuple[Step, ...]] = (
    learn_tasks,
    make_plan,
    provision,
    check_environment,
    find_capacity,
    build_report,
    judge,
)


def execute(steps: tuple[Step, ...], options: Options, console: Console) -> Campaign:
    campaign = start(options, console)
    for step in steps:
        campaign = step(campaign)
    return campaign
