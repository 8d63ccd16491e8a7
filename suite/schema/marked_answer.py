"""The answer of another process on its standard output. Wrappers, start-up files and packages may print beside it."""

import json
from typing import Any, Final

MARK: Final = "labscale answers: "


def answer_line(answer: object) -> str:
    """Return the answer as a line of its own, even if somebody left half a line before it."""
    return f"\n{MARK}{json.dumps(answer)}\n"


def last_answer(output: str) -> Any:
    """Return the last whole answer in ``output``, or None. A process that dies may leave half a line."""
    for line in reversed(output.splitlines()):
        if line.startswith(MARK):
            try:
                return json.loads(line.removeprefix(MARK))
            except (ValueError, RecursionError):
                continue
    return None
