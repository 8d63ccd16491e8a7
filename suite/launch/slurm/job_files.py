"""The files of a round's Slurm job, which labscale may not have watched: ``job.json`` and ``end.json``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from suite.errors import SchedulerError
from suite.files.input_file import read_input, read_text
from suite.files.json_file import explained
from suite.launch.slurm.script import DIFFERENCES, END, JOB
from suite.launch.watch import LOG


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """The job that writes to the folder."""

    job_id: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the script of the job ended, by the clock of the node."""

    exit_code: int
    started_unix_s: float
    ended_unix_s: float
    nodes: str  # compressed
    told_to_stop: bool  # by SIGTERM, as Slurm ends jobs


_SUBMITTED: Final = TypeAdapter(Submitted)
_ENDED: Final = TypeAdapter(Ended)


def submitted(run_dir: Path) -> Submitted | None:
    """The job that writes to the folder; None if there is none.

    Raises:
        SchedulerError: the file is damaged.
    """
    again = "Delete it, and the round is submitted anew; a job of it that still runs is then cancelled."
    return _read(_SUBMITTED, run_dir / JOB, again)


def ended(run_dir: Path) -> Ended | None:
    """How the script ended; None if it has not.

    Raises:
        SchedulerError: the file is damaged.
    """
    return _read(_ENDED, run_dir / END, "Delete it, and Slurm is asked; where it has forgotten the job, it runs again.")


def ended_by_itself(run_dir: Path) -> bool:
    """Whether the script has ended, and Slurm did not end the job."""
    end = ended(run_dir)
    return end is not None and not end.told_to_stop


def why_untrained(run_dir: Path) -> str:
    """Why a job did not train: its nodes differ, or could not be compared; and what to do."""
    found = run_dir / DIFFERENCES
    differences = read_text(found).strip() if found.is_file() else ""
    anyway = "or train all the same with --ignore-env-check."
    if differences:
        return (
            f"has nodes that differ, and did not train:\n{differences}\n"
            f"Keep one of them out (--sbatch-option exclude=NODE), {anyway}"
        )
    last_words = read_text(run_dir / LOG).strip().splitlines()[-3:]
    return "\n".join(
        (
            f"did not train: what compares its nodes could not run. The end of {run_dir / LOG}:",
            *(last_words or ["(nothing)"]),
            f"The checkout and its Python must be in the same folders on every node; put them there, {anyway}",
        )
    )


def _read[T](adapter: TypeAdapter[T], path: Path, next_step: str) -> T | None:
    try:
        return adapter.validate_json(read_input(path))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        why = explained(error) if isinstance(error, ValidationError) else error.strerror
        raise SchedulerError(f"{path} is not readable: {why}. {next_step}") from error
