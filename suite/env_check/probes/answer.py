"""Writes a probe's answers: marked JSON objects on its standard output, the last of which counts. A crash loses little.

A loaded driver may print to standard output, so the probe redirects that to standard error.
"""

import os
import resource
import sys
from collections.abc import Callable

from suite.schema.rank_protocol import answer_line


def open_answer() -> Callable[[object], None]:
    """Reserve standard output for answers and return the function that writes one."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a driver that aborts is a finding, not a core file
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr

    def answer(facts: object) -> None:
        stream.write(answer_line(facts))
        stream.flush()

    return answer
