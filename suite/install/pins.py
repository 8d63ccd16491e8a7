"""Resolves the requirements of every environment into hashed requirement files under ``containers/pins``.

The files contain exact versions and hashes only, no index, host or path, so that they install from any index or mirror,
with uv or pip. They are valid for Linux x86_64 and Python 3.12.
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

from suite.errors import WorkerEnvironmentError

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
    Pins(
        name="ovphysx",
        sources=("containers/pins/worker.in", "containers/pins/ovphysx.in"),
        glibc="2_35",
        seeded_by="worker",
    ),
    Pins(
        name="skrl-jax",
        sources=("containers/pins/worker.in", "containers/pins/skrl-jax.in"),
        glibc="2_35",
        seeded_by="worker",
    ),
    Pins(
        name="watch",
        sources=("containers/pins/worker.in", "containers/pins/watch.in"),
        glibc="2_35",
        seeded_by="worker",
    ),
    Pins(
        name="torchrl",
        sources=("containers/pins/worker.in", "containers/pins/torchrl.in"),
        glibc="2_35",
        seeded_by="worker",
    ),
    Pins(
        name="lerobot",
        sources=("containers/pins/worker.in", "containers/pins/lerobot.in"),
        glibc="2_35",
        seeded_by="worker",
    ),
    Pins(name="lint", sources=("--group", "pyproject.toml:lint"), glibc="2_28"),
    Pins(name="tests", sources=("--group", "pyproject.toml:tests"), glibc="2_28", constrained_by="lint"),
    Pins(name="report", sources=("--group", "pyproject.toml:report"), glibc="2_28", constrained_by="lint"),
    Pins(name="ray", sources=("--group", "pyproject.toml:ray"), glibc="2_28", constrained_by="lint"),
    Pins(name="nox", sources=("--group", "pyproject.toml:nox"), glibc="2_28", constrained_by="lint"),
    Pins(name="suite", sources=("--group", "pyproject.toml:suite"), glibc="2_28", constrained_by="lint"),
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
