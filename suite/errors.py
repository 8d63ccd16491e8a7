"""Every error that a user can meet. A message says what went wrong, what was got, what is allowed, and the next step.

The first line of each class is the meaning of its exit code in the book (`book/run/commands.md`).
"""

from typing import ClassVar


class LabscaleError(Exception):
    """Base of all errors that are reported to the user without a traceback."""

    exit_code: ClassVar[int] = 1

    def __init_subclass__(cls, *, exit_code: int) -> None:
        cls.exit_code = exit_code


class MatrixError(LabscaleError, exit_code=10):
    """A matrix or catalog file is not valid, or selects nothing."""


class UsageError(LabscaleError, exit_code=11):
    """An option has a value that cannot be used."""


class WorkerEnvironmentError(LabscaleError, exit_code=12):
    """Python, packages or assets are missing, or not as pinned."""


class CampaignError(LabscaleError, exit_code=13):
    """A results folder belongs to another campaign, or another process is using it."""


class StoreError(LabscaleError, exit_code=14):
    """A stored result cannot be read, is not valid, or would be overwritten."""


class BundleError(LabscaleError, exit_code=15):
    """A bundle cannot be made or installed."""


class ReportError(LabscaleError, exit_code=16):
    """The report cannot be built."""


class ContainerError(LabscaleError, exit_code=17):
    """An image cannot be built or used, or the container engine refuses."""


class EnvironmentNotFit(LabscaleError, exit_code=18):
    """env_check found a fault with which the chosen stack cannot run."""


class SchedulerError(LabscaleError, exit_code=19):
    """The scheduler or a host of a cluster refuses a job, or does not answer."""


class RunsFailed(LabscaleError, exit_code=20):
    """The campaign ended, but some runs did not complete."""


class ResultsDiffer(LabscaleError, exit_code=21):
    """Stored results differ from what their raw samples give, or are incomplete."""


class NotFitToSubmit(LabscaleError, exit_code=23):
    """Results cannot be submitted: unfinished, of changed code, without a run on a GPU, or with a private name."""


class OutputError(LabscaleError, exit_code=24):
    """Standard output cannot be written: its reader has ended, or its disk is full."""


class ResourcesError(LabscaleError, exit_code=25):
    """A limit of this shell or machine leaves too little memory, or too few open files or processes."""


class Interrupted(LabscaleError, exit_code=130):
    """The user ended the command; everything that finished is kept."""
