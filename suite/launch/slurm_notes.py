"""What a round's folder says of its Slurm job, for when labscale was not there: ``job.json`` and ``end.json``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from suite.errors import SchedulerError
from suite.launch.slurm_script import END, JOB


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """Which job has the folder."""

    job_id: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How its script ended, by the clock of the node."""

    exit_code: int
    started_unix_s: float
    ended_unix_s: float
    nodes: str | None = None  # compressed; scripts of earlier versions do not say it
    told_to_stop: bool = False  # by SIGTERM, as Slurm ends jobs; scripts of earlier versions do not say it


_SUBMITTED: Final = TypeAdapter(Submitted)
_ENDED: Final = TypeAdapter(Ended)


def submitted(run_dir: Path) -> Submitted | None:
    """None when no job has the folder.

    Raises:
        SchedulerError: the file is damaged.
    """
    again = "Delete it, and the round is submitted anew; a job of it that still runs is then cancelled."
    return _read(_SUBMITTED, run_dir / JOB, again)


def ended(run_dir: Path) -> Ended | None:
    """None when the script has not come to its end.

    Raises:
        SchedulerError: the file is damaged.
    """
    return _read(_ENDED, run_dir / END, "Delete it, and Slurm is asked; where it has forgotten the job, it runs again.")


def ended_by_itself(run_dir: Path) -> bool:
    """Whether the script has come to its end, and not because Slurm ended the job."""
    end = ended(run_dir)
    return end is not None and not end.told_to_stop


def _read[T](adapter: TypeAdapter[T], path: Path, next_step: str) -> T | None:
    if not path.exists():
        return None
    try:
        return adapter.validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "document"
        raise SchedulerError(f"{path} is not readable: {where}: {first['msg']}. {next_step}") from error
