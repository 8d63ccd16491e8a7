"""Every error that a user can meet. A message says what went wrong, what was got, what is allowed, and the next step.

The first line of each class is the meaning of its exit code in the book (`book/run/commands.md`).
"""


class LabscaleError(Exception):
    """Base of all errors that are reported to the user without a traceback."""

    exit_code = 1


class MatrixError(LabscaleError):
    """A matrix or catalog file is not valid, or selects nothing."""

    exit_code = 10


class UsageError(LabscaleError):
    """An option has a value that cannot be used."""

    exit_code = 11


class WorkerEnvironmentError(LabscaleError):
    """Python, packages or assets are missing, or not as pinned."""

    exit_code = 12


class CampaignError(LabscaleError):
    """A results folder belongs to another campaign, or another process is using it."""

    exit_code = 13


class StoreError(LabscaleError):
    """A stored result cannot be read, is not valid, or would be overwritten."""

    exit_code = 14


class BundleError(LabscaleError):
    """A bundle cannot be made or installed."""

    exit_code = 15


class ReportError(LabscaleError):
    """The report cannot be built."""

    exit_code = 16


class ContainerError(LabscaleError):
    """An image cannot be built or used, or the container engine refuses."""

    exit_code = 17


class EnvironmentNotFit(LabscaleError):
    """env_check found a fault with which the chosen stack cannot run."""

    exit_code = 18


class SchedulerError(LabscaleError):
    """The scheduler or a host of a cluster refuses a job, or does not answer."""

    exit_code = 19


class RunsFailed(LabscaleError):
    """The campaign ended, but some runs did not complete."""

    exit_code = 20


class ResultsDiffer(LabscaleError):
    """Stored results differ from what their raw samples give, or are incomplete."""

    exit_code = 21


class NotFitToSubmit(LabscaleError):
    """Results cannot be submitted: unfinished, of changed code, without a run on a GPU, or with a private name."""

    exit_code = 23


class OutputError(LabscaleError):
    """Standard output cannot be written: its reader has ended, or its disk is full."""

    exit_code = 24


class ResourcesError(LabscaleError):
    """A limit of this shell or machine leaves too little memory, or too few open files or processes."""

    exit_code = 25


class Interrupted(LabscaleError):
    """The user ended the command; everything that finished is kept."""

    exit_code = 130
