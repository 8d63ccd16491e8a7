"""Resolves the requirements of every environment into hashed requirement files under ``containers/pins``.

The files contain exact versions and hashes only, no index, host or path, so that they install from any index or mirror,
with uv or pip. They are valid for Linux x86_64 and Python 3.12. uv lists the releases of a package here too.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from suite.errors import WorkerEnvironmentError
from suite.external.parent_death import end_with_parent
from suite.files.wording import last_lines

PINS_DIR: Final = Path("containers/pins")
PYTHON_VERSION: Final = "3.12"


@dataclass(frozen=True, kw_only=True)
class Pins:
    """One requirement file: what it is resolved from, and which other file's versions it uses."""

    name: str
    sources: tuple[str, ...]  # arguments of `uv pip compile`, relative to the project
    glibc: str  # oldest version that the wheels must support, as in the wheel tag
    constrained_by: str | None = None  # exactly these versions
    seeded_by: str | None = None  # these versions where possible

    @property
    def path(self) -> Path:
        return PINS_DIR / f"{self.name}.txt"


# In the order of resolution. omniverseclient, which isaaclab needs, has no wheel for a glibc older than 2.35. `lint` is
# the largest of the suite's own environments: the others use its versions, so that all agree.
ALL_PINS: Final = (
    Pins(name="worker", sources=("containers/pins/worker.in",), glibc="2_35"),
    *(
        Pins(
            name=name,
            sources=("containers/pins/worker.in", f"containers/pins/{name}.in"),
            glibc="2_35",
            seeded_by="worker",
        )
        for name in ("ovphysx", "skrl-jax", "watch", "torchrl", "lerobot")
    ),
    Pins(name="lint", sources=("--group", "pyproject.toml:lint"), glibc="2_28"),
    *(
        Pins(name=name, sources=("--group", f"pyproject.toml:{name}"), glibc="2_28", constrained_by="lint")
        for name in ("tests", "report", "ray", "nox", "suite")
    ),
)

# These would put files or versions of this machine into the result. Index addresses stay: a mirror may be the only way.
LOCAL_SETTINGS: Final = (
    "UV_FIND_LINKS",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_BUILD_CONSTRAINT",
    "UV_CUSTOM_COMPILE_COMMAND",
)

ALLOWED_LINE: Final = re.compile(
    r"#.*|[a-z0-9][a-z0-9._-]*==[0-9][a-z0-9.]*( ; .+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", re.ASCII
)


def find_uv() -> str:
    """Return the path of uv, which is imported here because bundles do not contain it."""
    import uv  # noqa: PLC0415

    return uv.find_uv_bin()


def refresh(project_root: Path, *, upgrade: bool = False) -> list[Path]:
    """Resolve all pins and return the written files; pinned versions stay unless ``upgrade``.

    Raises WorkerEnvironmentError if uv finds no solution, or a result would not be portable; then no file changes.
    """
    with tempfile.TemporaryDirectory(prefix="labscale-pins-") as scratch:
        resolved = Path(scratch)
        for pins in ALL_PINS:
            _resolve(pins, project_root=project_root, resolved=resolved, upgrade=upgrade)
        written = []
        for pins in ALL_PINS:
            target = project_root / pins.path
            target.write_text((resolved / target.name).read_text())
            written.append(target)
    return written


def sha256(path: Path) -> str:
    """Return the hex digest of a file's bytes, for example of a requirement file, which identifies an environment."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def requirements_of(path: Path) -> list[Requirement]:
    """Return what a file of requirements asks for, without its comments.

    Raises:
        InvalidRequirement: a line is not a requirement.
    """
    lines = [line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [Requirement(line) for line in lines if line]


def check_portable(text: str, *, name: str) -> None:
    """Raise WorkerEnvironmentError unless every line is a comment, an exact version or a hash."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not ALLOWED_LINE.fullmatch(line):
            raise WorkerEnvironmentError(
                f"{name} would not install elsewhere: line {number} is {line!r}, but only comments, exact versions and "
                "sha256 hashes are allowed. Look for a local wheel or an address in the requirements or uv's settings."
            )


def _resolve(pins: Pins, *, project_root: Path, resolved: Path, upgrade: bool) -> None:
    output = resolved / pins.path.name
    seed = resolved / f"{pins.seeded_by}.txt" if pins.seeded_by else project_root / pins.path
    if seed.exists() and (pins.seeded_by or not upgrade):
        shutil.copyfile(seed, output)  # uv keeps the versions of an existing output file
    constraint = ("--constraint", str(resolved / f"{pins.constrained_by}.txt")) if pins.constrained_by else ()
    command = [
        find_uv(), "pip", "compile", *pins.sources, *constraint, "--output-file", str(output),
        "--python", sys.executable, "--python-version", PYTHON_VERSION,
        "--python-platform", f"x86_64-manylinux_{pins.glibc}",
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate", "--quiet",
    ]  # fmt: skip
    env = {name: value for name, value in os.environ.items() if name not in LOCAL_SETTINGS}
    done = subprocess.run(command, cwd=project_root, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WorkerEnvironmentError(
            f"uv could not resolve {pins.path}, exit code {done.returncode}:\n{done.stderr.strip()}\n"
            f"Change the requirements in {' '.join(pins.sources)}, or check the connection to the package index."
        )
    text = _header(pins) + output.read_text()
    check_portable(text, name=str(pins.path))
    output.write_text(text)


def _header(pins: Pins) -> str:
    sources = " ".join(source for source in pins.sources if not source.startswith("--"))
    return (
        f"# Made by `nox -s pins` from {sources}: do not edit.\n"
        f"# Python {PYTHON_VERSION}, Linux x86_64, glibc {pins.glibc.replace('_', '.')} or newer. "
        "Install with --require-hashes.\n"
    )


# ---- releases of a package on the index that the user has set ----


NO_SOLUTION: Final = "No solution found"  # in what uv says if there is no such release
_NAME_IT: Final = (
    "Check the name and the network, or set UV_DEFAULT_INDEX to your mirror. Without an index, list the releases "
    "yourself, such as --bisect newton==1.6.0,1.6.1."
)


def releases(package: str, within: SpecifierSet, python: Path) -> list[str]:
    """Return every release ``within`` these versions that this Python can install, the oldest first.

    uv has no command that lists them, so it is asked for the newest one, then for the newest before that, and so on.
    Pre-releases, withdrawn releases and those without a wheel are left out.

    Raises:
        WorkerEnvironmentError: the index does not answer, or has no such release.
    """
    command = [
        find_uv(), "pip", "compile", "--quiet", "--no-deps", "--no-build", "--no-header", "--no-annotate",
        "--prerelease", "disallow", "--python", str(python), "-",
    ]  # fmt: skip
    newest_first: list[str] = []
    while True:
        asked = within & SpecifierSet(f"<{newest_first[-1]}") if newest_first else within
        done = subprocess.run(
            command, input=f"{package}{asked}", capture_output=True, text=True, check=False, preexec_fn=end_with_parent
        )
        if done.returncode == 0:
            newest_first.append(done.stdout.strip().partition("==")[2])
        elif NO_SOLUTION not in done.stderr:
            raise WorkerEnvironmentError(
                f"uv could not list the releases of {package}:\n{last_lines(done.stderr)}\n{_NAME_IT}"
            )
        elif newest_first:
            return newest_first[::-1]
        else:
            raise WorkerEnvironmentError(f"The package index has no release {package}{within}. {_NAME_IT}")
