"""Asks a Python that is not labscale's own. Its wrapper, start-up files and packages may print beside the answer."""

import subprocess
from pathlib import Path
from typing import Any, Final

from suite.errors import WorkerEnvironmentError
from suite.external import parent_death
from suite.files.wording import last_words
from suite.schema.rank_protocol import MARK, last_answer

TIMEOUT_S: Final = 120.0


def ask(python: Path, code: str, *arguments: str) -> Any:
    """Run ``code`` in a Python and return what it leaves in ``answer``, as JSON has it.

    Raises:
        WorkerEnvironmentError: this is no Python, or none that runs here; the message has what it printed.
    """
    code = f"{code}\nimport json\nprint('\\n{MARK}' + json.dumps(answer), flush=True)\n"
    try:
        done = parent_death.run([str(python), "-c", code, *arguments], timeout_s=TIMEOUT_S)
    except FileNotFoundError:
        raise missing(python) from None
    except (OSError, subprocess.TimeoutExpired) as error:
        why = error.strerror if isinstance(error, OSError) else f"it did not end within {TIMEOUT_S:g} s"
        raise does_not_run(python, f"{why}") from error
    answer = last_answer(done.stdout)
    if done.returncode or answer is None:
        raise does_not_run(
            python,
            f"asked for its packages, it ended with exit code {done.returncode}: "
            f"{last_words(done.stderr if done.stderr.strip() else done.stdout)}",
        )
    return answer


def missing(python: Path) -> WorkerEnvironmentError:
    return WorkerEnvironmentError(f"The worker's Python {python} does not exist. Pass the path of a Python.")


def does_not_run(python: Path, why: str) -> WorkerEnvironmentError:
    return WorkerEnvironmentError(
        f"The worker's Python {python} does not run: {why}. Pass the path of a Python, whose `{python} -V`"
        " prints a version."
    )
