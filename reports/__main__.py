"""The command lines behind nox's sessions that read results: ``python -m reports SESSION``.

What a session needs is imported here, which can take two seconds, so that Ctrl-C meanwhile ends as it does later.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from reports.site.topics import COMMANDS
from suite.options.command_line import exit_code_of

MODULES: Final = {
    "report": "reports.site.build",
    "publish": "reports.site.publish",
    "verify": "reports.verification.command",
    "submit": "reports.submit.command",
    "accept": "reports.accept.command",
    **COMMANDS,
}


def main(session: str, arguments: Sequence[str]) -> int:
    """As ``main`` of the session's module."""

    def run() -> int:
        code: int = import_module(MODULES[session]).main(arguments)
        return code

    return exit_code_of(run)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
