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
from pathlib import Path
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from suite.errors import WorkerEnvironmentError
from suite.external.parent_death import end_with_parent
from suite.files.wording import last_lines

PINS_DIR: Final = Path("containers/pins")
PYTHON_VERSION: Final = "3.12"

# In the order of resolution. The other workers have the versions of the first where possible.
OF_WORKERS: Final = ("worker", "ovphysx", "skrl-jax", "watch", "torchrl", "lerobot")
# `lint` is the largest of the suite's own environments: the others have exactly its versions, so that all agree.
OF_SUITE: Final = ("lint", "tests", "report", "ray", "nox", "suite")

# The oldest glibc that the wheels must support. omniverseclient, which isaaclab needs, has no wheel for an older one.
WORKER_GLIBC: Final = "2.35"
SUITE_GLIBC: Final = "2.28"

# These would put files or versions of this machine into the result. Index addresses stay: a mirror may be the only way.
LOCAL_SETTINGS: Final = (
    "UV_FIND_LINKS", "UV_CONSTRAINT", "UV_OVERRIDE", "UV_BUILD_CONSTRAINT", "UV_CUSTOM_COMPILE_COMMAND",
)  # fmt: skip

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
    paths = [PINS_DIR / f"{name}.txt" for name in (*OF_WORKERS, *OF_SUITE)]
    with tempfile.TemporaryDirectory(prefix="labscale-pins-") as scratch:
        for path in paths:
            _resolve(path, project_root=project_root, resolved=Path(scratch), upgrade=upgrade)
        for path in paths:
            shutil.copyfile(Path(scratch, path.name), project_root / path)
    return [project_root / path for path in paths]


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


def _resolve(path: Path, *, project_root: Path, resolved: Path, upgrade: bool) -> None:
    """Resolve one file into the folder ``resolved``, which has those before it."""
    output, seed = resolved / path.name, None if upgrade else project_root / path
    if path.stem in OF_WORKERS:
        sources = tuple(dict.fromkeys((f"{PINS_DIR}/worker.in", f"{PINS_DIR}/{path.stem}.in")))
        glibc, arguments = WORKER_GLIBC, sources
        seed = seed if path.stem == OF_WORKERS[0] else resolved / f"{OF_WORKERS[0]}.txt"
    else:
        sources, glibc = (f"pyproject.toml:{path.stem}",), SUITE_GLIBC
        constraint = () if path.stem == OF_SUITE[0] else ("--constraint", str(resolved / f"{OF_SUITE[0]}.txt"))
        arguments = ("--group", *sources, *constraint)
    if seed and seed.exists():
        shutil.copyfile(seed, output)  # uv keeps the versions of an existing output file
    command = [
        find_uv(), "pip", "compile", *arguments, "--output-file", str(output),
        "--python", sys.executable, "--python-version", PYTHON_VERSION,
        "--python-platform", f"x86_64-manylinux_{glibc.replace('.', '_')}",
        "--generate-hashes", "--no-emit-index-url", "--no-emit-find-links", "--no-header", "--no-annotate", "--quiet",
    ]  # fmt: skip
    env = {name: value for name, value in os.environ.items() if name not in LOCAL_SETTINGS}
    done = subprocess.run(command, cwd=project_root, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise WorkerEnvironmentError(
            f"uv could not resolve {path}, exit code {done.returncode}:\n{done.stderr.strip()}\n"
            f"Change the requirements in {' '.join(sources)}, or check the connection to the package index."
        )
    text = (
        f"# Made by `nox -s pins` from {' '.join(sources)}: do not edit.\n"
        f"# Python {PYTHON_VERSION}, Linux x86_64, glibc {glibc} or newer. Install with --require-hashes.\n"
        f"{output.read_text()}"
    )
    check_portable(text, name=str(path))
    output.write_text(text)


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
