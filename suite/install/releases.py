"""The releases of a package on the index that the user has set, by uv."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from packaging.specifiers import SpecifierSet

from suite.errors import WorkerEnvironmentError
from suite.external.parent_death import end_with_parent
from suite.files.wording import last_lines
from suite.install.pins import find_uv

NO_SOLUTION: Final = "No solution found"  # in what uv says if there is no such release
NEXT_STEP: Final = (
    "Check the name and the network, or set UV_DEFAULT_INDEX to your mirror. Without an index, list the releases "
    "yourself, such as --bisect newton==1.6.0,1.6.1."
)


def releases(package: str, within: SpecifierSet, python: Path) -> list[str]:
    """Return every release ``within`` these versions that this Python can install, the oldest first.

    uv has no command that lists them, so it is asked for the newest one, then for the newest before that, and so on.
    Pre-releases, withdrawn releases and those without a wheel are left out.

    Raises:
        WorkerEnvironmentError: the index does not answer, or has no such release.
    """
    found = list(_newest_first(package, within, python))
    if not found:
        raise WorkerEnvironmentError(f"The package index has no release {package}{within}. {NEXT_STEP}")
    return found[::-1]


def _newest_first(package: str, within: SpecifierSet, python: Path) -> Iterator[str]:
    command = [
        find_uv(), "pip", "compile", "--quiet", "--no-deps", "--no-build", "--no-header", "--no-annotate",
        "--prerelease", "disallow", "--python", str(python), "-",
    ]  # fmt: skip
    asked = within
    while True:
        done = subprocess.run(
            command, input=f"{package}{asked}", capture_output=True, text=True, check=False, preexec_fn=end_with_parent
        )
        if done.returncode == 0:
            version = done.stdout.strip().partition("==")[2]
            yield version
            asked = within & SpecifierSet(f"<{version}")
        elif NO_SOLUTION in done.stderr:
            return
        else:
            raise WorkerEnvironmentError(
                f"uv could not list the releases of {package}:\n{last_lines(done.stderr)}\n{NEXT_STEP}"
            )
