"""``bench --video``: after the counted rounds, run each case once more and film the last seconds of its training.

A filmed round renders within its iterations. It has a folder of its own, ``OUT/films``, and no statistic counts it. Its
video goes to ``OUT/videos``, see ``suite.records.folders``.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.campaign.folder import Folder
from suite.campaign.identity import identity, opened
from suite.campaign.runs.rounds import run_uncounted
from suite.campaign.runs.training import Run
from suite.campaign.state import Campaign
from suite.errors import LabscaleError, StoreError, UsageError
from suite.files.input_file import read_input
from suite.files.json_file import read_json
from suite.files.wording import counted
from suite.install.task_pictures import VIEWS
from suite.launch.registry import entry_of
from suite.options.command_line import say
from suite.options.options import Options
from suite.records import store
from suite.records.folders import VIDEOS, Facts, intact_videos, store_video
from suite.schema.record import Case, Launch, RunRecord

FILMS: Final = "films"  # in the campaign's folder
# tasks/film/filming.py reads the variable and writes the files.
FILM_VARIABLE: Final = "LABSCALE_FILM"
VIDEO_FILE: Final = "film.mp4"
POSTER_FILE: Final = "film.jpg"
FACTS_FILE: Final = "film.json"


def check_camera(campaign: Campaign) -> Campaign:
    """Check that the launcher can film before hours of rounds, not after them."""
    require_camera(campaign.options)
    return campaign


def film_all(campaign: Campaign) -> Campaign:
    """Film each case in one more round, with ``--video``. Whatever goes wrong, the results stay as they are."""
    if not campaign.options.rounds.video or campaign.runtime is None:
        return campaign
    try:
        with opened(campaign.out, identity(campaign)) as folder:
            filmed, unfilmed = film_cases(campaign, folder)
    except LabscaleError as error:
        return replace(campaign, unfilmed=(str(error),))
    say(campaign.console, f"{counted(len(filmed), 'video')}: {campaign.out / VIDEOS}")
    return replace(campaign, unfilmed=tuple(unfilmed))


def tell_unfilmed(campaign: Campaign) -> Campaign:
    """Say at the end which videos are missing and why: it is no error, because the results do not need them."""
    for reason in campaign.unfilmed:
        say(campaign.console, f"No video: {reason}", style="yellow")
    return campaign


def require_camera(options: Options) -> None:
    """Raise UsageError if a video is asked for and the launcher cannot film."""
    if options.rounds.video and not entry_of(options).can_film:
        raise UsageError(
            f"--video takes the files of a filmed round from this machine, and --launcher {options.place.launcher} was "
            "never tried with it. Film with --launcher native, or leave --video out."
        )


def why_not(case: Case) -> str | None:
    """Return why a case cannot be filmed; None if it can."""
    if not case.learns:
        return "it is a single-part test and trains nothing"
    if case.stack != "kitless":
        return f"only Newton's simulations can be seen without Isaac Sim's renderer, and the stack is {case.stack}"
    if case.trainings_per_gpu > 1:
        return "several trainings share its GPU"
    return None


def filmed_launch(launch: Launch) -> Launch:
    """Return the launch with its training filmed. Its hang timeout is longer: the film is encoded at the end."""
    views = (view for view in VIEWS.values() if view.task == launch.case.task)
    view = next(({"eye": view.eye, "target": view.target} for view in views), {})
    patient = replace(launch.case, hang_timeout_s=launch.case.timeout_s)
    return replace(launch, case=patient, env={**launch.env, FILM_VARIABLE: json.dumps(view)})


def film_cases(campaign: Campaign, folder: Folder) -> tuple[list[str], list[str]]:
    """Film the cases whose video is missing; return the ids of all that have one, and each that failed, with why.

    A video of an earlier command is kept. A filmed round that failed is run again only with ``--retry-failed``.

    Raises:
        CampaignError: the disk is full.
        StoreError: the list of videos or a record is not readable, or a video cannot be written.
    """
    cases = [item.case for item in campaign.planned if not item.infeasible]
    for case in cases:
        if why := why_not(case):
            say(campaign.console, f"{case.case_id} cannot be filmed: {why}.")
    there = intact_videos(folder.root)
    runs = [_run_of(folder, case) for case in cases if why_not(case) is None and case.case_id not in there]
    missing = [run for run in runs if campaign.options.rounds.retry_failed or not _has_failed(run)]
    failed = [_failure(run, store.read_record(run.record_path)) for run in runs if run not in missing]
    for run, record in run_uncounted(campaign, folder, missing):
        if record.outcome == "completed":
            _keep_video(run, folder.root)
        else:
            failed.append(_failure(run, record))
    return sorted(intact_videos(folder.root)), failed


def _run_of(folder: Folder, case: Case) -> Run:
    return Run(
        case=case,
        round=0,
        run_dir=folder.root / FILMS / case.case_id,
        uncounted="filmed, not counted",
        adapt=filmed_launch,
    )


def _has_failed(run: Run) -> bool:
    return run.record_path.exists() and store.read_record(run.record_path).outcome != "completed"


def _failure(run: Run, record: RunRecord) -> str:
    return (
        f"{run.case.case_id} {record.outcome} while it was filmed: {record.reason}; its logs are below {run.run_dir}. "
        "Film it again with --video --retry-failed."
    )


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
