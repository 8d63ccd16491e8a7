"""Renders an image's package list as CycloneDX: its Debian packages and those of its Python environments."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

# Functions import the library when they need it: otherwise every command would wait for it.
if TYPE_CHECKING:
    from cyclonedx.model.component import Component

LIST_DEBIAN: Final = ("dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${Architecture}\n")
_LIST: Final = """
import importlib.metadata, json
print(json.dumps(sorted({(each.metadata["Name"], each.version) for each in importlib.metadata.distributions()})))
"""
LIST_PYTHON: Final = ("-c", _LIST)


@dataclass(frozen=True, kw_only=True)
class Package:
    kind: Literal["deb", "pypi"]
    name: str
    version: str
    architecture: str | None = None


def parse_debian(listing: str, distribution: str) -> list[Package]:
    """Parse the output of ``LIST_DEBIAN``."""
    rows = [line.split("\t") for line in listing.splitlines() if line.strip()]
    return [
        Package(kind="deb", name=f"{distribution}/{name}", version=version, architecture=architecture)
        for name, version, architecture in rows
    ]


def parse_python(listing: str) -> list[Package]:
    """Parse a Python's output of ``LIST_PYTHON``."""
    return [Package(kind="pypi", name=name, version=version) for name, version in json.loads(listing)]


def render(packages: Iterable[Package], *, name: str, version: str, image_id: str) -> str:
    """Return CycloneDX 1.6 as JSON; a package of several environments appears once."""
    from cyclonedx.model.bom import Bom  # noqa: PLC0415
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415
    from cyclonedx.output.json import JsonV1Dot6  # noqa: PLC0415

    bom = Bom()
    image = Component(type=ComponentType.CONTAINER, name=name, version=version, bom_ref=f"{name}@{image_id}")
    bom.metadata.component = image
    bom.components.update(_component(package) for package in set(packages))  # the library sorts them
    bom.register_dependency(image, bom.components)
    return str(JsonV1Dot6(bom).output_as_string(indent=1)) + "\n"


def _component(package: Package) -> "Component":
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415
    from packageurl import PackageURL  # noqa: PLC0415

    namespace, _, name = package.name.rpartition("/")
    url = PackageURL(
        type=package.kind,
        namespace=namespace or None,
        name=name,
        version=package.version,
        qualifiers={"arch": package.architecture} if package.architecture else None,
    )
    return Component(type=ComponentType.LIBRARY, name=name, version=package.version, purl=url, bom_ref=url.to_string())
