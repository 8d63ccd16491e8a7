"""Opens each file that it is given: ``probes.device_nodes FILE...``. A driver may hang in an open.

It prints one JSON object after each file: file -> the error's name ("EPERM"), or null if it opens.
"""

import errno
import os
import sys
from collections.abc import Sequence

from suite.env_check.probes.answer import open_answer


def refusal(path: str) -> str | None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return None


def main(paths: Sequence[str]) -> None:
    answer = open_answer()
    refusals: dict[str, str | None] = {}
    for path in paths:
        refusals[path] = refusal(path)
        answer(refusals)


if __name__ == "__main__":
    main(sys.argv[1:])
