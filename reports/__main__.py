"""The command lines behind nox's sessions that read results: ``python -m reports SESSION``.

What a session needs is imported here, which can take two seconds, so that Ctrl-C meanwhile ends as it does later.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from suite.errors import UsageError
from suite.options.command_line import exit_code_of

MODULES: Final = {
    "report": "reports.site.build",
    "publish": "reports.site.publish",
    "verify": "reports.verification.command",
    "submit": "reports.submit.command",
    "accept": "reports.accept.command",
    "export": "reports.export.command",
    "compare": "reports.compare.command",
    "learning_references": "reports.figures.learning_references",
}


def main(session: str, arguments: Sequence[str]) -> int:
    """Run ``main`` of the session's module. A session that is not there ends as ``UsageError`` does."""

    def run() -> int:
        if session not in MODULES:
            raise UsageError(
                f"python -m reports: got the session {session!r}, allowed are {', '.join(sorted(MODULES))}. Name one."
            )
        code: int = import_module(MODULES[session]).main(arguments)
        return code

    return exit_code_of(run)


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:2]), sys.argv[2:]))
