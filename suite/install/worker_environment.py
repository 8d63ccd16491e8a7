"""Shared by the worker environment and its copies: the file that marks a complete one, and running uv."""

import subprocess
import sys
from typing import Final

from suite.errors import WorkerEnvironmentError
from suite.external.parent_death import end_with_parent
from suite.files.wording import last_lines
from suite.install.pins import find_uv

COMPLETE: Final = "complete.json"  # written last: without it the environment is installed again


def run_uv(*arguments: str, doing: str, next_step: str) -> None:
    """Run uv with the user's own settings for index, proxy and certificates.

    Raises:
        WorkerEnvironmentError: uv failed. ``doing`` completes "uv could not", ``next_step`` ends the message.
    """
    # A terminal shows uv's own progress of gigabytes; a log gets uv's output only if it fails.
    stderr = None if sys.stderr.isatty() else subprocess.PIPE
    done = subprocess.run(
        [find_uv(), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=stderr,
        text=True,
        check=False,
        preexec_fn=end_with_parent,
    )
    if done.returncode != 0:
        said = last_lines(done.stderr or "see its output above")
        raise WorkerEnvironmentError(f"uv could not {doing}, exit code {done.returncode}:\n{said}\n{next_step}")
