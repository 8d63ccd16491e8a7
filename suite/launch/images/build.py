"""Build an image, check it from inside, list its packages and write down what it is; name it only if it passes.

The list of packages is a CycloneDX document (an SBOM): Debian's, and those of both Python environments.
"""

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from suite import __version__
from suite.env_check.report import Report
from suite.env_check.request import Request
from suite.errors import ContainerError
from suite.external.container_spec import ContainerSpec, Gpus, ImageFacts
from suite.external.docker_engine import Engine
from suite.files.paths import ROOT
from suite.launch.images.table import PYTHON_LABEL, SUITE_PYTHON, BuildPlan, pack, tag_of
from suite.launch.images.worker import report_of
from suite.schema.rank_protocol import travelling

# Functions import the library when they need it: otherwise every command would wait for it.
if TYPE_CHECKING:
    from packageurl import PackageURL

CHECK_TIMEOUT_S: Final = 300.0
LIST_TIMEOUT_S: Final = 120.0
OS_RELEASE: Final = ("cat", "/etc/os-release")
LIST_DEBIAN: Final = ("dpkg-query", "--show", "--showformat", "${Package}\t${Version}\t${Architecture}\n")
LIST_PYTHON: Final = """
import importlib.metadata, json
print(json.dumps(sorted({(item.metadata["Name"], item.version) for item in importlib.metadata.distributions()})))
"""


@dataclass(frozen=True, kw_only=True)
class BuiltImage:
    """An image that passed, and its two files."""

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
    record, sbom = out_dir / f"{plan.name}.json", out_dir / f"{plan.name}.cdx.json"
    sbom.write_text(render_sbom(packages, plan, image_id), encoding="utf-8")
    engine.tag(image_id, plan.tag)
    image = engine.find_image(plan.tag)
    document = {
        "name": plan.name,
        "tag": plan.tag,
        "digest": image.digest,
        "base": plan.build_args["BASE"],
        "built_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "num_packages": len(packages),
        **asdict(image),
        "env_check": checked.as_document(),
    }
    record.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    on_line(f"Built {plan.tag}, {len(packages)} packages: {record}, {sbom}")
    return BuiltImage(tag=plan.tag, image_id=image_id, record=record, sbom=sbom)


def check(engine: Engine, plan: BuildPlan, image_id: str, *, gpus: Gpus) -> Report:
    """Run env_check inside and return its report.

    Raises ContainerError if the image cannot run its stack, or env_check itself failed.
    """
    request = Request(stack=plan.image.stack, device="cpu" if gpus is None else None)
    report = env_check_inside(engine, engine.find_image(image_id), request, gpus=gpus)
    if report.failures:
        faults = "\n".join(
            f"  {item.name}: {item.fault}: found {item.found}; {item.repair}" for item in report.failures
        )
        raise ContainerError(
            f"The image {image_id} was built, but cannot run the stack {plan.image.stack}, so it gets no name:\n"
            f"{faults}\nRepair {plan.image.dockerfile} or the engine's host, then build again. Look inside: "
            f"docker run -it --rm {image_id} sh"
        )
    return report


def env_check_inside(engine: Engine, image: ImageFacts, request: Request, *, gpus: Gpus) -> Report:
    """Run env_check of an image. Raises ContainerError if it crashed, or did not answer with a report."""
    python = image.labels.get(PYTHON_LABEL)  # None: an image that is not labscale's
    argv = (SUITE_PYTHON, *request.inside_image(Path(python) if python else None).arguments())
    done = _inside(engine, image.image_id, argv, timeout_s=CHECK_TIMEOUT_S, gpus=gpus)
    return report_of(done, image.image_id, next_step=f"Look inside: docker run -it --rm {image.image_id} sh")


def list_packages(engine: Engine, plan: BuildPlan, image_id: str) -> list["PackageURL"]:
    """Return every Debian package and every Python package of both environments of an image."""
    from packageurl import PackageURL  # noqa: PLC0415

    def output_of(*argv: str) -> str:
        done = _inside(engine, image_id, argv, timeout_s=LIST_TIMEOUT_S)
        if done.returncode != 0:
            raise ContainerError(
                f"The packages of {image_id} cannot be listed: {argv[0]} ended with exit code {done.returncode}: "
                f"{done.stderr.strip()[-500:]}"
            )
        return done.stdout

    release = dict(line.split("=", 1) for line in output_of(*OS_RELEASE).splitlines() if "=" in line)
    distribution = release["ID"].strip('"')
    rows = (line.split("\t") for line in output_of(*LIST_DEBIAN).splitlines() if line.strip())
    packages = [
        PackageURL(type="deb", namespace=distribution, name=name, version=version, qualifiers={"arch": architecture})
        for name, version, architecture in rows
    ]
    for python in (SUITE_PYTHON, plan.image.worker_python):
        listed = json.loads(output_of(python, "-c", LIST_PYTHON))
        packages += [PackageURL(type="pypi", name=name, version=version) for name, version in listed]
    return packages


def find_built(engine: Engine, name: str) -> ImageFacts:
    """Return the image that ``build NAME`` makes from the present base, Dockerfile and pins.

    Raises:
        ContainerError: the engine does not have it: it was not built, or one of these has changed since.

    """
    tag = tag_of(name, project_root=ROOT, version=__version__)
    try:
        return engine.find_image(tag)
    except ContainerError as error:
        raise ContainerError(
            f"There is no image {tag}. Build it with `nox -s build -- {name}`, or load one that was built of the "
            "same base, Dockerfile and pins with `docker load`."
        ) from error


def _inside(
    engine: Engine, image_id: str, argv: tuple[str, ...], *, timeout_s: float, gpus: Gpus = None
) -> subprocess.CompletedProcess[str]:
    spec = ContainerSpec(image=image_id, argv=argv, env=travelling(os.environ), gpus=gpus, ipc="host")
    return engine.run_to_end(spec, timeout_s=timeout_s)


def render_sbom(packages: Iterable["PackageURL"], plan: BuildPlan, image_id: str) -> str:
    """Return CycloneDX 1.6 as JSON; a package of several environments appears once."""
    from cyclonedx.model.bom import Bom  # noqa: PLC0415
    from cyclonedx.model.component import Component, ComponentType  # noqa: PLC0415
    from cyclonedx.output.json import JsonV1Dot6  # noqa: PLC0415

    bom, name = Bom(), f"labscale/{plan.name}"
    version = plan.tag.rpartition(":")[2]
    image = Component(type=ComponentType.CONTAINER, name=name, version=version, bom_ref=f"{name}@{image_id}")
    bom.metadata.component = image
    bom.components.update(  # the library sorts them
        Component(type=ComponentType.LIBRARY, name=url.name, version=url.version, purl=url, bom_ref=url.to_string())
        for url in set(packages)
    )
    bom.register_dependency(image, bom.components)
    return str(JsonV1Dot6(bom).output_as_string(indent=1)) + "\n"
