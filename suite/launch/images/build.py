"""Build an image, check it from inside, list its packages and write down what it is; name it only if it passes.

The list of packages is a CycloneDX document (an SBOM): Debian's, and those of both Python environments.
"""

import json
import os
import uuid
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from suite import __version__
from suite.env_check.report import Report, read_report
from suite.env_check.request import Request
from suite.errors import ContainerError
from suite.external import docker_engine
from suite.external.container_spec import ContainerSpec, Finished, Gpus, ImageFacts
from suite.external.docker_engine import Engine
from suite.launch.images.table import SUITE_PYTHON, BuildPlan, pack, tag_of
from suite.schema.rank_protocol import travelling

# Functions import the library when they need it: otherwise every command would wait for it.
if TYPE_CHECKING:
    from cyclonedx.model.component import Component

CHECK_TIMEOUT_S: Final = 300.0
LIST_TIMEOUT_S: Final = 120.0
OS_RELEASE: Final = ("cat", "/etc/os-release")
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


@dataclass(frozen=True, kw_only=True)
class BuiltImage:
    """An image that passed, and its two files."""

    name: str
    tag: str
    image_id: str
    record: Path
    sbom: Path


def build_image(
    engine: Engine,
    plan: BuildPlan,
    *,
    out_dir: Path,
    network: str | None = None,
    gpus: Gpus = None,
    on_line: Callable[[str], None],
) -> BuiltImage:
    """Build, check, record and tag an image, in this order: only an image that passed and is recorded gets a name.

    Raises ContainerError if a step of the build failed, or env_check says that the image cannot run its stack.
    """
    on_line(f"Building {plan.tag} with {engine.name}, of {plan.build_args['BASE']}")
    image_id = engine.build(
        pack(plan.files), build_args=plan.build_args, labels=plan.labels, network=network, on_line=on_line
    )
    on_line(f"Checking {image_id} from inside")
    checked = check(engine, plan, image_id, gpus=gpus)
    packages = list_packages(engine, plan, image_id)
    out_dir.mkdir(parents=True, exist_ok=True)
    built = BuiltImage(
        name=plan.name,
        tag=plan.tag,
        image_id=image_id,
        record=out_dir / f"{plan.name}.json",
        sbom=out_dir / f"{plan.name}.cdx.json",
    )
    document = render_sbom(
        packages, name=f"labscale/{plan.name}", version=plan.tag.rpartition(":")[2], image_id=image_id
    )
    built.sbom.write_text(document, encoding="utf-8")
    engine.tag(image_id, plan.tag)
    record = render_record(plan, engine.find_image(plan.tag), checked, num_packages=len(packages))
    built.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    on_line(f"Built {plan.tag}, {len(packages)} packages: {built.record}, {built.sbom}")
    return built


def check(engine: Engine, plan: BuildPlan, image_id: str, *, gpus: Gpus) -> Report:
    """Run env_check inside and return its report.

    Raises ContainerError if the image cannot run its stack, or env_check itself failed.
    """
    request = Request(stack=plan.image.stack, device="cpu" if gpus is None else None)
    report = env_check_inside(engine, image_id, request.inside_image(Path(plan.image.worker_python)), gpus=gpus)
    if report.failures:
        raise ContainerError(
            f"The image {image_id} was built, but cannot run the stack {plan.image.stack}, so it gets no name:\n"
            f"{_faults(report)}\nRepair {plan.image.dockerfile} or the engine's host, then build again. Look inside: "
            f"docker run -it --rm {image_id} sh"
        )
    return report


def env_check_inside(engine: Engine, image_id: str, request: Request, *, gpus: Gpus) -> Report:
    """Run env_check of an image. Raises ContainerError if it crashed, or did not answer with a report."""
    finished = _inside(engine, image_id, (SUITE_PYTHON, *request.arguments()), timeout_s=CHECK_TIMEOUT_S, gpus=gpus)
    try:
        report = read_report(finished.stdout)
        if finished.exit_code != report.exit_code:
            raise ValueError(f"its report says exit code {report.exit_code}")  # noqa: TRY301
    except ValueError as error:
        raise ContainerError(
            f"env_check did not run in the image {image_id}, exit code {finished.exit_code}: {error}\n"
            f"{(finished.stderr or finished.stdout).strip()[-2000:]}\nLook inside: docker run -it --rm {image_id} sh"
        ) from error
    return report


def list_packages(engine: Engine, plan: BuildPlan, image_id: str) -> list[Package]:
    """Return every Debian package and every Python package of both environments of an image."""

    def said(*argv: str) -> str:
        finished = _inside(engine, image_id, argv, timeout_s=LIST_TIMEOUT_S)
        if finished.exit_code != 0:
            raise ContainerError(
                f"The packages of {image_id} cannot be listed: {argv[0]} ended with exit code {finished.exit_code}: "
                f"{finished.stderr.strip()[-500:]}"
            )
        return finished.stdout

    release = dict(line.split("=", 1) for line in said(*OS_RELEASE).splitlines() if "=" in line)
    packages = parse_debian(said(*LIST_DEBIAN), release["ID"].strip('"'))
    for python in (SUITE_PYTHON, plan.image.worker_python):
        packages += parse_python(said(python, *LIST_PYTHON))
    return packages


def render_record(plan: BuildPlan, image: ImageFacts, checked: Report, *, num_packages: int) -> dict[str, Any]:
    """Return the contents of ``<name>.json``."""
    return {
        "name": plan.name,
        "tag": plan.tag,
        "digest": image.digest,
        "base": plan.build_args["BASE"],
        "built_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "num_packages": num_packages,
        **asdict(image),
        "env_check": checked.as_document(),
    }


def find_built(engine: Engine, name: str, *, project_root: Path) -> ImageFacts:
    """Return the image that ``build NAME`` makes from the present base, Dockerfile and pins.

    Raises:
        ContainerError: the engine does not have it: it was not built, or one of these has changed since.

    """
    tag = tag_of(name, project_root=project_root, version=__version__)
    try:
        return engine.find_image(tag)
    except ContainerError as error:
        raise ContainerError(
            f"There is no image {tag}. Build it with `nox -s build -- {name}`, or load one that was built of the "
            "same base, Dockerfile and pins with `docker load`."
        ) from error


def _inside(engine: Engine, image_id: str, argv: tuple[str, ...], *, timeout_s: float, gpus: Gpus = None) -> Finished:
    run_id = uuid.uuid4().hex[:12]
    spec = ContainerSpec(
        name=f"labscale-{run_id}",
        image=image_id,
        argv=argv,
        env=travelling(os.environ),
        gpus=gpus,
        ipc="host",
        labels=docker_engine.owner_label(),
    )
    return engine.run_to_end(spec, timeout_s=timeout_s)


def _faults(report: Report) -> str:
    """Return the failures of an env_check report, one line each."""
    return "\n".join(f"  {check.name}: {check.fault}: found {check.found}; {check.repair}" for check in report.failures)


def render_sbom(packages: Iterable[Package], *, name: str, version: str, image_id: str) -> str:
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
