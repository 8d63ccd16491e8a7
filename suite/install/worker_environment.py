"""Shared by the worker environment and its copies: the file that marks a complete one, copying it, and running uv."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from suite.errors import WorkerEnvironmentError
from suite.external.parent_death import end_with_parent
from suite.files.wording import last_lines
from suite.install.pins import find_uv

COMPLETE: Final = "complete.json"  # written last: without it the environment is installed again
FACTS: Final = "tasks"  # in an environment: facts about its tasks (suite.campaign.planning.registered_task), not copied


def run_uv(*arguments: str, doing: str, next_step: str) -> None:
    """Run uv with the user's own settings for index, proxy and certificates.

    Raises:
        WorkerEnvironmentError: uv failed. ``doing`` completes "uv could not", ``next_step`` ends the message.
    """
    # A terminal shows uv's own progress of gigabytes; a log gets uv's output only if it fails.
    stderr = None if sys.stderr.isatty() else subprocess.PIPE
    done = subprocess.run(
        [find_uv(), *arguments],
        # Files of a worker are no hard links into uv's cache, where an edit for another project would change them.
        env={**os.environ, "UV_LINK_MODE": "copy"},
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        check=False,
        preexec_fn=end_with_parent,
    )
    if done.returncode != 0:
        said = last_lines(done.stderr or "see its output above")
        raise WorkerEnvironmentError(f"uv could not {doing}, exit code {done.returncode}:\n{said}\n{next_step}")


def copy_environment(base: Path, environment: Path) -> None:
    """Copy an environment by hard links, which takes a second and little disk.

    Raises:
        WorkerEnvironmentError: it cannot be copied.
    """
    try:
        shutil.copytree(
            base,
            environment,
            symlinks=True,
            copy_function=_link,
            ignore=lambda folder, _: (COMPLETE, FACTS) if Path(folder) == base else (),
        )
    except OSError as error:
        raise WorkerEnvironmentError(
            f"The worker environment could not be copied to {environment}: {error.strerror or error}. Free some disk, "
            "or set LABSCALE_CACHE to a folder on a larger one."
        ) from error


def _link(source: str, target: str) -> None:
    """Make a hard link, or a copy on a file system without them."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)
