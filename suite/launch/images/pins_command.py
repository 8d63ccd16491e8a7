"""The command of `nox -s pins`: resolves the requirement files and asks for the digests of the images' bases."""

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from suite.errors import ContainerError
from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.install import pins
from suite.launch.images.table import IMAGES, read_images
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


def refresh_digests(engine: Engine, project_root: Path, *, on_message: Callable[[str], None]) -> list[str]:
    """Write the digest that each base has now; return the names of the images whose digest changed.

    If a registry refuses, for example without a login, its digest stays as it is and ``on_message`` gets the reason.

    Raises:
        ContainerError: no registry answered.

    """
    path = project_root / IMAGES
    text = path.read_text(encoding="utf-8")
    images = read_images(project_root)
    changed, refusals = [], []
    for name, image in images.items():
        try:
            digest = engine.registry_digest(image.base)
        except ContainerError as error:
            refusals.append(f"{name}: {error}")
            on_message(f"The digest of {name} stays {image.digest or 'empty'}: {error}")
            continue
        if digest != image.digest:
            changed.append(name)
            text = with_digest(text, name, digest)
            on_message(f"{name}: {image.base} is now {digest}")
    if len(refusals) == len(images):
        raise ContainerError("No registry answered, so every digest stays as it is:\n" + "\n".join(refusals))
    path.write_text(text, encoding="utf-8")
    return changed


def with_digest(text: str, name: str, digest: str) -> str:
    """Return ``images.toml`` with another digest for one image; nothing else changes."""
    table = re.compile(rf'(^\[images\.{re.escape(name)}\]\n(?:(?!\[).*\n)*?digest = )"[^"\n]*"', re.MULTILINE)
    return table.sub(rf'\g<1>"{digest}"', text, count=1)


if __name__ == "__main__":
    sys.exit(main())
