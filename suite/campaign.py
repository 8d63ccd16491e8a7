"""A campaign from options to results: the program is the tuple of steps at the end of this file's ``bench``."""

import errno
import hashlib
import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from rich.console import Console

from suite import environment, store, upstream
from suite.catalog import load_catalog
from suite.collect import collect
from suite.errors import CampaignError, ReportError, RunsFailed
from suite.folder import Folder, opened
from suite.launch import LAUNCHERS
from suite.matrix import expand, load_matrix, select
from suite.plan import plan, render_launch, shell_command
from suite.progress import Reporter
from suite.provision import Worker, locate_worker, provision_worker
from suite.reduce import round_time_s
from suite.schema import Assets, Case, CaseResult, Device, Environment, Launch, PlannedCase, RlLibrary, RunRecord, Stack
from suite.summary import print_agreement, print_pair, print_plan, print_summary

ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the user asked for; see ``python -m suite bench --help``."""

    matrix: str
    series: tuple[str, ...] = ()
    case_globs: tuple[str, ...] = ()
    rl_libraries: tuple[RlLibrary, ...] = ()
    gpus: tuple[int, ...] = ()
    repeats: int | None = None
    stack: Stack | None = None
    device: Device | None = None
    assets: Assets = "offline"
    seed: int | None = None
    worker_python: Path | None = None
    out: Path | None = None
    host_label: str | None = None
    retry_failed: bool = False
    upstream: bool = False
    with_report: bool = True


@dataclass(frozen=True, kw_only=True)
class Campaign:
    """What the steps know; each returns it with more filled in."""

    options: Options
    console: Console
    machine: Environment
    device: Device
    planned: tuple[PlannedCase, ...] = ()
    worker: Worker | None = None
    results: tuple[CaseResult, ...] = field(default=())

    @property
    def out(self) -> Path:
        return (self.options.out or ROOT / "runs" / Path(self.options.matrix).stem).absolute()

    @property
    def stack(self) -> Stack:
        return self.options.stack or "kitless"


def start(options: Options, console: Console) -> Campaign:
    """Look at the machine: a GPU is used when there is one, unless the user says otherwise."""
    machine = environment.capture(host_label=options.host_label)
    device = options.device or ("cuda" if machine.gpus else "cpu")
    return Campaign(options=options, console=console, machine=machine, device=device)


def make_plan(campaign: Campaign) -> Campaign:
    """Expand the matrix, narrow it, and judge every case on this machine. Starts nothing."""
    options, catalog = campaign.options, load_catalog()
    matrix = load_matrix(options.matrix, catalog)
    cases = expand(
        matrix, catalog, device=campaign.device, stack=options.stack, assets=options.assets, seed=options.seed
    )
    cases = select(
        cases,
        series=options.series,
        case_glob=options.case_globs,
        rl_library=options.rl_libraries,
        gpus=options.gpus,
    )
    planned = plan(
        cases,
        gpus_available=len(campaign.machine.gpus),
        cpus_available=campaign.machine.num_cpus or 1,
        device=campaign.device,
        available_stacks=("kitless", "ovphysx"),
        rounds=options.repeats or matrix.rounds,
        catalog=catalog,
    )
    return replace(campaign, planned=tuple(planned))


def show_plan(campaign: Campaign) -> Campaign:
    """Print the plan with the commands that ``bench`` would run; the worker need not be installed for that."""
    worker = locate_worker(project_root=ROOT, stack=campaign.stack, worker_python=campaign.options.worker_python)
    folder = Folder(root=campaign.out)
    commands = [
        None if item.infeasible else shell_command(_render(campaign, worker, folder, item.case, 0))
        for item in campaign.planned
    ]
    print_plan(campaign.console, campaign.planned, commands, campaign.machine)
    return campaign


def provision(campaign: Campaign) -> Campaign:
    """Install the worker environment and build the assets, or check what the user brought."""
    worker = provision_worker(
        project_root=ROOT,
        stack=campaign.stack,
        worker_python=campaign.options.worker_python,
        assets=campaign.options.assets,
        on_message=lambda message: campaign.console.print(message, highlight=False, markup=False),
    )
    machine = replace(campaign.machine, worker_pins_sha256=worker.pins_sha256, asset_sha256=worker.asset_sha256)
    return replace(campaign, worker=worker, machine=machine)


def run_all(campaign: Campaign) -> Campaign:
    """Run every round that is not finished yet, round by round over all cases, and store each case that is complete."""
    with opened(campaign.out, identity(campaign)) as folder:
        if campaign.options.retry_failed:
            _set_failures_aside(campaign, folder)
        todo = [
            (item, round_index)
            for round_index in range(max(item.rounds for item in campaign.planned))
            for item in campaign.planned
            if round_index < item.rounds and not item.infeasible and not folder.is_finished(item.case, round_index)
        ]
        _say_what_is_left(campaign, folder, len(todo))
        reporter = Reporter(campaign.console, list(campaign.planned), [item.case for item, _ in todo])
        for item, round_index in todo:
            with _disk_errors(folder.root):
                record = _run_round(campaign, folder, reporter, item.case, round_index)
                reporter.ended(record, _figures(record))
                _store_if_complete(campaign, folder, item)
        with _disk_errors(folder.root):
            results = tuple(_store_if_complete(campaign, folder, item) for item in campaign.planned)
    return replace(campaign, results=tuple(result for result in results if result))


def identity(campaign: Campaign) -> dict[str, object]:
    """What must be equal for results to share a folder; narrowing options are not in it, so a campaign can grow."""
    matrix_text = "\n".join(repr(item.case) for item in make_plan(_whole(campaign)).planned)
    machine = campaign.machine
    return {
        "matrix": campaign.options.matrix,
        "matrix_sha256": hashlib.sha256(matrix_text.encode()).hexdigest(),
        "rounds": campaign.options.repeats,
        "device": campaign.device,
        "stack": campaign.stack,
        "assets": campaign.options.assets,
        "asset_sha256": machine.asset_sha256,
        "worker_pins_sha256": machine.worker_pins_sha256,
        "cpu_model": machine.cpu_model,
        "gpus": [gpu.name for gpu in machine.gpus],
        "driver_version": machine.driver_version,
        "host_label": machine.host_label,
    }


def _whole(campaign: Campaign) -> Campaign:
    whole = replace(campaign.options, series=(), case_globs=(), rl_libraries=(), gpus=())
    return replace(campaign, options=whole)


def _run_round(campaign: Campaign, folder: Folder, reporter: Reporter, case: Case, round_index: int) -> RunRecord:
    worker = campaign.worker
    if worker is None:
        raise AssertionError("provision comes before run_all")
    folder.require_space()
    run_dir = folder.run_dir(case, round_index)
    folder.set_aside(run_dir, "interrupted")
    launch = _render(campaign, worker, folder, case, round_index)
    with reporter.run(case, round_index) as line:
        result = LAUNCHERS["native"](launch, on_progress=line.update)
    record = collect(run_dir, case, round_index, result, campaign.machine, argv=_without_paths(launch))
    store.write_record(record, folder.record_path(case, round_index))
    if record.outcome == "completed":
        _drop_checkpoints(run_dir)
    if campaign.options.upstream and record.outcome == "completed":
        pair = upstream.run(launch)
        print_pair(campaign.console, case, pair)
    return record


def _render(campaign: Campaign, worker: Worker, folder: Folder, case: Case, round_index: int) -> Launch:
    return render_launch(
        case,
        round_index=round_index,
        worker_python=worker.python,
        project_root=ROOT,
        run_dir=folder.run_dir(case, round_index),
        asset_root=worker.asset_root,
        cache_dir=worker.cache_dir,
        cpus=campaign.machine.num_cpus or 1,
        python_path=os.environ.get("PYTHONPATH"),
    )


def _without_paths(launch: Launch) -> tuple[str, ...]:
    """The command as it is published: where this machine keeps its files is nobody's business."""
    python, *rest = launch.argv
    return (Path(python).name, *(part.replace(launch.run_dir, "RUN_DIR") for part in rest))


def _drop_checkpoints(run_dir: Path) -> None:
    """Delete the libraries' model files, some 30 MB a round; the record keeps the hash of the trained parameters."""
    for pattern in ("*.pt", "*.pth"):
        for path in (run_dir / "library").rglob(pattern):
            path.unlink()


def _figures(record: RunRecord) -> str:
    if record.outcome != "completed":
        return ""
    time_s = round_time_s(record)
    return f", {time_s:.3g} s/iteration, {record.case.frames_per_iteration / time_s:,.0f} frames/s"


def _store_if_complete(campaign: Campaign, folder: Folder, item: PlannedCase) -> CaseResult | None:
    """Return the stored result of a case, storing it first if its last round has just ended; None before that."""
    path = folder.case_path(item.case)
    if path.exists():
        return store.read_case(path)
    if item.infeasible:
        records: tuple[RunRecord, ...] = (_skipped(campaign, item),)
    else:
        paths = [folder.record_path(item.case, index) for index in range(item.rounds)]
        if not all(record_path.exists() for record_path in paths):
            return None
        records = tuple(store.read_record(record_path) for record_path in paths)
    result = CaseResult(case=item.case, rounds=records)
    store.write_case(result, path)
    return result


def _skipped(campaign: Campaign, item: PlannedCase) -> RunRecord:
    return RunRecord(
        case=item.case,
        round=0,
        outcome="skipped",
        reason=item.infeasible,
        exit_code=None,
        started_utc=None,
        wall_time_s=None,
        environment=campaign.machine,
    )


def _set_failures_aside(campaign: Campaign, folder: Folder) -> None:
    """Give the rounds that did not complete a new attempt; the old one stays beside it."""
    for item in campaign.planned:
        failed = [
            index
            for index in range(item.rounds)
            if folder.is_finished(item.case, index)
            and store.read_record(folder.record_path(item.case, index)).outcome != "completed"
        ]
        for index in failed:
            folder.set_aside(folder.run_dir(item.case, index), "failed")
        if failed or item.infeasible:
            folder.set_aside(folder.case_path(item.case), "superseded")


def _say_what_is_left(campaign: Campaign, folder: Folder, todo: int) -> None:
    rounds = sum(item.rounds for item in campaign.planned if not item.infeasible)
    infeasible = sum(1 for item in campaign.planned if item.infeasible)
    done = f", {rounds - todo} finished earlier and kept" if rounds > todo else ""
    skipped = f", {infeasible} cases are skipped here (the plan says why)" if infeasible else ""
    campaign.console.print(f"{todo} runs to do{done}{skipped}. Results: {folder.root}", highlight=False, markup=False)


class _disk_errors:  # noqa: N801  (used as a statement, like contextlib.suppress)
    """Turn a full disk into an error that says what is kept and what to do."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise CampaignError(
                f"The disk of {self._root} is full ({error}). Free some space and run the same command again: "
                "every finished round is kept, only the one in progress is repeated."
            ) from error


def summarise(campaign: Campaign) -> Campaign:
    """Print what came out and, where upstream ran too, how the two clocks compare."""
    print_summary(campaign.console, campaign.results)
    if campaign.options.upstream:
        folder = Folder(root=campaign.out)
        pairs = [
            pair
            for result in campaign.results
            for record in result.completed
            if (pair := upstream.read_pair(record.case, record.round, folder.run_dir(record.case, record.round)))
        ]
        upstream.write_pairs(pairs, campaign.out / "upstream.json")
        print_agreement(campaign.console, pairs)
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
BENCH: Final[tuple[Step, ...]] = (make_plan, provision, run_all, summarise, build_report, judge)


def execute(steps: tuple[Step, ...], options: Options, console: Console) -> Campaign:
    campaign = start(options, console)
    for step in steps:
        campaign = step(campaign)
    return campaign
