"""One attempt: what labscale may do with an input that is not as it should be."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from suite import errors
from suite.errors import LabscaleError

KINDS: Final = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, LabscaleError)]
EXIT_CODES: Final = frozenset({0, None, *(kind.exit_code for kind in KINDS)})


@contextmanager
def taken_or_refused() -> Iterator[Path]:
    """Give an empty folder. The body ends, or raises a labscale error or an exit with the code of one."""
    with TemporaryDirectory(prefix="labscale-fuzz-") as folder:
        try:
            yield Path(folder)
        except LabscaleError:
            pass
        except SystemExit as ended:
            if ended.code not in EXIT_CODES:
                raise
