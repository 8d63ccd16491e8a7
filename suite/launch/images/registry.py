"""Asks registries for the digests of base images and writes them into ``containers/images.toml``."""

import re
from collections.abc import Callable
from pathlib import Path

from suite.errors import ContainerError
from suite.external.docker_engine import Engine
from suite.launch.images.table import IMAGES, read_images


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
