"""Which options go together. Pure.

One that would do nothing beside the others is refused, because whoever gave it believes that it holds.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from suite.errors import UsageError
from suite.options.options import Options

Names = tuple[str, ...]  # of fields of Options

# Where the field is named otherwise.
FLAGS: Final = {"sbatch_options": "--sbatch-option", "worker_packages": "--worker-package"}
OF_SLURM: Final[Names] = ("partition", "account", "time", "sbatch_options", "render_only")
OF_ROUNDS: Final[Names] = ("upstream", "profile", "retry_failed", "capacity")  # for rounds that run
OF_NODES: Final[Names] = ("nodes", "ssh_config", "emulate_nodes")


def check_options(options: Options) -> None:
    """Refuse options that contradict each other, and those that nothing would look at.

    Raises:
        UsageError: an option is of another launcher than the one chosen, or of another use of the command.
    """
    if (options.launcher == "emulated") != (options.emulate_nodes is not None):
        raise UsageError(
            f"--emulate-nodes N takes parts of this machine for nodes, and no --launcher but its own (emulated); got"
            f" --launcher {options.launcher} and {options.emulate_nodes or 'no'} nodes to emulate."
        )
    for chosen, why, names in _uses(options):
        if given := _given(options, names):
            raise UsageError(f"{chosen} {why}, so it has no use for {given}. Leave either out.")
    for names, is_there, needed, got in _needs(options):
        if not is_there and (given := _given(options, names)):
            raise UsageError(f"{given}: only with {needed}, got {got}. Add what is missing, or leave it out.")


def _uses(options: Options) -> Iterator[tuple[str, str, Names]]:
    """What was chosen, what that does, and what means nothing to it."""
    if options.render:
        yield f"--render {options.render}", "writes files for a cluster that chooses its own nodes", OF_NODES
        of_worker = ("worker_python", "worker_packages")
        yield f"--render {options.render}", "writes commands for an image, which has its own Python", of_worker
    elif options.launcher in ("container", "apptainer") or options.image:
        yield (
            f"--launcher {options.launcher} in an image",
            "runs the worker of an image, which has what it was built with",
            ("worker_packages",),
        )
    if options.worker_python:
        taken = "takes a Python as it is (install the package there)"
        yield f"--worker-python {options.worker_python}", taken, ("worker_packages",)
    if options.render_only:
        yield "--render-only", "writes scripts and runs nothing", OF_ROUNDS


def _needs(options: Options) -> Iterator[tuple[Names, bool, str, str]]:
    """Options, whether what they go with was chosen, what that is, and what was chosen instead."""
    launcher = f"--launcher {options.launcher}"
    yield OF_SLURM, options.launcher == "slurm", "--launcher slurm", launcher
    of_ssh = "--launcher ssh (Slurm takes --sbatch-option nodelist=HOST,HOST)"
    yield ("nodes",), options.launcher == "ssh", of_ssh, launcher
    yield ("ssh_config",), options.launcher == "ssh", "--nodes HOST,HOST, which ssh reaches", launcher
    yield ("shm_gb",), options.launcher == "container", "--launcher container", launcher
    in_image = options.launcher in ("container", "apptainer", "slurm") or options.render is not None
    yield ("image",), in_image, "bench --launcher container, apptainer or slurm, or with plan --render", launcher
    render = f"--render {options.render}" if options.render else "no --render"
    yield ("volume_claim",), options.render == "kubernetes", "plan --render kubernetes", render


def _given(options: Options, names: Sequence[str]) -> str:
    """Those that the user gave, as they are written on the command line."""
    defaults = Options(matrix=options.matrix)
    given = [name for name in names if getattr(options, name) != getattr(defaults, name)]
    return ", ".join(FLAGS.get(name, f"--{name.replace('_', '-')}") for name in given)
