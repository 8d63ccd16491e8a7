"""The command of `nox -s pins`: resolves the requirement files and asks for the digests of the images' bases."""

import sys
from collections.abc import Sequence

from suite.errors import ContainerError
from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.install import pins
from suite.launch.images.registry import refresh_digests
from suite.options.command_line import Parser, exit_code_of


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit code: 0 also if no engine or registry answers, since the digests then stay as they are."""
    return exit_code_of(lambda: _run(arguments))


def _run(arguments: Sequence[str] | None) -> int:
    parser = Parser(
        prog="nox -s pins --",
        description="Resolve the hashed requirement files again, and ask for the digests of the images' bases.",
    )
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions, not those already pinned")
    for written in pins.refresh(ROOT, upgrade=parser.read(arguments).upgrade):
        print(written)
    try:
        refresh_digests(Engine.connect(), ROOT, on_message=print)
    except ContainerError as error:
        print(f"The digests of the images stay as they are: {error}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
