"""Runs that are no results: profiled (``bench --profile``), filmed (``bench --video``) and watched (``watch``).

After the counted rounds, ``bench`` runs each case once more. A profiled or filmed round is slower, so it has a folder
of its own, ``OUT/profiles`` or ``OUT/films``, and no statistic counts it. A video goes to ``OUT/videos``, see
``suite.records.folders``. What ``watch`` trains is not kept.
"""

import json
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from suite.campaign.folder import identity, opened
from suite.campaign.runs.rounds import run_uncounted
from suite.campaign.runs.run import Run, render
from suite.campaign.state import Campaign
from suite.errors import Interrupted, LabscaleError, RunsFailed, StoreError, UsageError
from suite.files.input_file import read_input
from suite.files.json_file import read_json
from suite.files.wording import counted
from suite.install.task_pictures import VIEWS
from suite.install.worker import Worker, install_worker, provision_worker
from suite.launch.contract import RunControl
from suite.launch.native import run as run_here
from suite.launch.registry import entry_of
from suite.matrix.own_worker import own_worker_of
from suite.options.command_line import say
from suite.options.options import Options
from suite.records import store
from suite.records.collect import collect
from suite.records.folders import VIDEOS, Facts, intact_videos, store_video
from suite.schema.record import Case

# tasks/rank/profiling.py reads both.
RANKS_VARIABLE: Final = "LABSCALE_PROFILE_RANKS"
NSYS_VARIABLE: Final = "LABSCALE_NSYS"

# tasks/film/filming.py reads both variables, writes the files, and serves at this host.
FILM_VARIABLE: Final = "LABSCALE_FILM"
VIDEO_FILE: Final = "film.mp4"
POSTER_FILE: Final = "film.jpg"
FACTS_FILE: Final = "film.json"
WATCH_VARIABLE: Final = "LABSCALE_WATCH"
HOST: Final = "127.0.0.1"
PINS: Final = "watch"  # the worker's with a viewer, apart from the worker that measures
PORT: Final = 8080  # another one if it is taken
ITERATIONS: Final = 10_000  # a library's checkpoints of more would fill a disk
LONGEST_S: Final = 7 * 24 * 3600.0  # a page can pause the simulation, which must not count as a hang


def check_tools(campaign: Campaign) -> Campaign:
    """Raise UsageError for a missing profiler or camera before hours of rounds, not after them."""
    options = campaign.options
    find_nsys(options)
    if options.rounds.video and not entry_of(options).runs_here:
        raise UsageError(
            f"--video takes the files of a filmed run from this machine, and --launcher {options.place.launcher} was "
            "never tried with it. Film with --launcher native, or leave --video out."
        )
    return campaign


def find_nsys(options: Options) -> str | None:
    """Path of the nsys command; None without ``--profile``. Raises UsageError as ``check_tools`` does."""
    if not options.rounds.profile:
        return None
    if not entry_of(options).runs_here:
        raise UsageError(
            f"--profile starts processes under the nsys of this machine, which --launcher {options.place.launcher} "
            "cannot reach. Profile with --launcher native, or leave --profile out."
        )
    nsys = shutil.which("nsys")
    if nsys is None:
        raise UsageError(
            "--profile needs nsys, the command line of NVIDIA Nsight Systems, which is not on PATH. Install "
            "nsight-systems-cli from NVIDIA's repository (it comes with the CUDA toolkit too) and put it on PATH, or "
            "leave --profile out."
        )
    return str(Path(nsys).absolute())


def profile_all(campaign: Campaign) -> Campaign:
    """Run each case once more with the chosen ranks profiled, unless an earlier command did.

    A case without any of the chosen ranks is not profiled.
    """
    nsys = find_nsys(campaign.options)
    if nsys is None:
        return campaign
    with opened(campaign.out, identity(campaign)) as folder:
        runs = _profiles(campaign, nsys)
        for run, record in run_uncounted(campaign, folder, [run for run in runs if not _is_profiled(run)]):
            for rank in record.profiled_ranks:
                if not (run.run_dir / f"profile-rank-{rank}.nsys-rep").exists():
                    say(
                        campaign.console,
                        f"    nsys left no report of rank {rank}; see the log of that process below {run.run_dir}",
                        style="yellow",
                    )
    say(campaign.console, f"{counted(len(runs), 'profiled run')}: {campaign.out / 'profiles'}")
    return campaign


def _profiles(campaign: Campaign, nsys: str) -> list[Run]:
    runs = []
    for case in _feasible(campaign):
        if ranks := tuple(sorted({rank for rank in campaign.options.rounds.profile if rank < case.world_size})):
            variables = {RANKS_VARIABLE: ",".join(map(str, ranks)), NSYS_VARIABLE: nsys}
            run = Run(
                case=case,
                round=0,
                run_dir=campaign.out / "profiles" / case.case_id,
                uncounted="profiled, not counted",
                profiled_ranks=ranks,
                variables=variables,
            )
            runs.append(run)
    return runs


def _is_profiled(run: Run) -> bool:
    """Whether an earlier command profiled these ranks to the end."""
    earlier = store.read_record(run.record_path) if run.record_path.exists() else None
    return earlier is not None and (earlier.outcome, earlier.profiled_ranks) == ("completed", run.profiled_ranks)


def _feasible(campaign: Campaign) -> list[Case]:
    return [item.case for item in campaign.planned if not item.infeasible]


def film_all(campaign: Campaign) -> Campaign:
    """Film each case in one more round, with ``--video``, unless it has a video. The results stay, whatever happens."""
    if not campaign.options.rounds.video:
        return campaign
    unfilmed: list[str] = []
    try:
        with opened(campaign.out, identity(campaign)) as folder:
            for run, record in run_uncounted(campaign, folder, _films(campaign)):
                if record.outcome == "completed":
                    _keep_video(run, folder.root)
                else:
                    unfilmed.append(
                        f"{run.case.case_id} {record.outcome} while it was filmed: {record.reason}; its logs are below "
                        f"{run.run_dir}. Film it again with --video --retry-failed."
                    )
            videos = intact_videos(folder.root)
    except LabscaleError as error:
        return replace(campaign, unfilmed=(str(error),))
    say(campaign.console, f"{counted(len(videos), 'video')}: {campaign.out / VIDEOS}")
    return replace(campaign, unfilmed=tuple(unfilmed))


def tell_unfilmed(campaign: Campaign) -> Campaign:
    """Say at the end which videos are missing and why: it is no error, because the results do not need them."""
    for reason in campaign.unfilmed:
        say(campaign.console, f"No video: {reason}", style="yellow")
    return campaign


def _films(campaign: Campaign) -> Iterator[Run]:
    there = intact_videos(campaign.out)
    for case in _feasible(campaign):
        if why := why_not_filmed(case):
            say(campaign.console, f"{case.case_id} cannot be filmed: {why}.")
        elif case.case_id not in there:
            views = (view for view in VIEWS.values() if view.task == case.task)
            view = next(({"eye": view.eye, "target": view.target} for view in views), {})
            run_dir, variables = campaign.out / "films" / case.case_id, {FILM_VARIABLE: json.dumps(view)}
            yield Run(case=case, round=0, run_dir=run_dir, uncounted="filmed, not counted", variables=variables)


def why_not_filmed(case: Case) -> str | None:
    """Return why a case cannot be filmed; None if it can."""
    if not case.learns:
        return "it is a single-part test and trains nothing"
    if case.stack != "kitless":
        return f"only Newton's simulations can be seen without Isaac Sim's renderer, and the stack is {case.stack}"
    if case.trainings_per_gpu > 1:
        return "several trainings share its GPU"
    return None


def _keep_video(run: Run, root: Path) -> None:
    """Store the video that a filmed round wrote. Raises StoreError if a file is missing or cannot be written."""
    again = f"Remove {run.run_dir} and run the same command again."
    facts = read_json(run.run_dir / FACTS_FILE, Facts, next_step=again)
    try:
        video, poster = (read_input(run.run_dir / name) for name in (VIDEO_FILE, POSTER_FILE))
    except OSError as error:
        raise StoreError(f"{error.filename} cannot be read: {error.strerror}. {again}") from error
    if facts is None:
        raise StoreError(f"{run.run_dir / FACTS_FILE} is missing. {again}")
    store_video(root, run.case.case_id, facts, video=video, poster=poster)


def watch(campaign: Campaign) -> Campaign:
    """Train the first case of the plan that can be watched, and say where.

    Raises:
        UsageError: no case of the plan can be watched here.
        Interrupted: Ctrl-C ended it, as it is meant to.
        RunsFailed: the training failed.
        WorkerEnvironmentError: something is missing that cannot be installed.
    """
    case = _watched_case(campaign)
    worker = _worker_with_viewer(campaign)
    port = viewer_port()
    say(campaign.console, f"{case.case_id} is starting, which takes a minute. Its results are not kept.")
    is_shown = False

    def say_address(iterations: int) -> None:
        nonlocal is_shown
        if iterations and not is_shown:
            is_shown = True
            say(campaign.console, f"Watch it at http://{HOST}:{port} (this machine only). Ctrl-C ends it.")

    try:
        with tempfile.TemporaryDirectory(prefix="labscale-watch-") as folder:
            run_dir = Path(folder) / "run"
            plain = render(campaign, worker, run_dir, case, 0, python_path=os.environ.get("PYTHONPATH"))
            patient = replace(case, iterations=ITERATIONS, timeout_s=LONGEST_S, hang_timeout_s=LONGEST_S)
            launch = replace(plain, case=patient, env={**plain.env, WATCH_VARIABLE: str(port)})
            result = run_here(launch, RunControl(on_progress=say_address))
            record = collect(run_dir, launch.case, 0, result, campaign.machine, argv=())
    except KeyboardInterrupt:
        raise Interrupted("Ended. Nothing was kept.") from None
    if record.outcome != "completed":
        raise RunsFailed(f"{case.case_id} {record.outcome} while it was watched: {record.reason}")
    say(campaign.console, f"{case.case_id} has trained {ITERATIONS:,} iterations, the most that is watched.")
    return campaign


def viewer_port() -> int:
    """Return ``PORT``, or another one if a program of this machine has it. Raises UsageError if none is free."""
    for wanted in (PORT, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((HOST, wanted))
            port: int = probe.getsockname()[1]
            return port
    raise UsageError(f"No port of {HOST} is free. Close a program that serves there, and run the same command again.")


def _worker_with_viewer(campaign: Campaign) -> Worker:
    """Return the worker of the pins with the viewer, with the kernels and assets of the one that measures."""
    on_message = partial(say, campaign.console)
    viewer = install_worker(pins=PINS, on_message=on_message)
    return replace(provision_worker(on_message=on_message), python=viewer.python, pins_sha256=viewer.pins_sha256)


def _watched_case(campaign: Campaign) -> Case:
    reasons = {}
    for item in campaign.planned:
        own = own_worker_of(item.case)
        of_worker = f"the viewer's environment has not what it needs ({own})" if own else None
        why = item.infeasible or why_not_filmed(item.case) or of_worker
        if why is None:
            return item.case
        reasons[item.case.case_id] = why
    listed = "\n".join(f"  {case_id}: {reason}" for case_id, reason in reasons.items())
    raise UsageError(
        f"None of these configurations can be watched here:\n{listed}\nName another; nox -s plan -- --matrix"
        f" {campaign.options.selection.matrix} lists all."
    )
