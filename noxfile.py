"""labscale: measure how robot learning on NVIDIA Isaac Lab scales over GPUs, on your hardware.

python3 -m nox -s env_check                      check this machine, and name what to repair
python3 -m nox -s bench                          try everything, take a first measurement on GPUs, build an HTML page
python3 -m nox -s plan -- --matrix full          show what the full matrix would run here, and its cost
python3 -m nox -s bench -- --matrix full         run it; after an interruption the same command continues
python3 -m nox -s bench -- --help                list all options
"""

import contextlib
import fcntl
import os
import re
import shutil
import sys
from pathlib import Path
from typing import Final, NoReturn

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2025.2"
nox.options.sessions = ["lint", "tests"]
nox.options.reuse_venv = "yes"
nox.options.default_venv_backend = "uv|virtualenv"

ROOT: Final = Path(__file__).parent
PYTHON: Final = "3.12"  # of the pinned requirements
NOT_AS_PINNED: Final = 12  # suite.errors.WorkerEnvironmentError; without its environment a session cannot import that

# Nox makes an environment before it calls a session. Two first starts would both make it, so the second waits here.
LOCK: Final = Path(__file__).open(encoding="utf-8")  # noqa: SIM115  (until this process ends)
if __name__ == "user_nox_module":  # nox gives this name
    with contextlib.suppress(OSError):  # a file system without locks
        fcntl.flock(LOCK, fcntl.LOCK_EX)


def install(session: nox.Session, group: str) -> None:
    """Install one hashed requirement file, unless all of it is there, and give the session plain PYTHON variables.

    An environment of another Python, or one that lost a package, is made anew.
    """
    session.env.update(dict.fromkeys(name for name in os.environ if name.startswith("PYTHON") and name != "PYTHONPATH"))
    session.env["PYTHONUTF8"] = "1"  # paths are UTF-8, whatever LANG says
    location = checked_location(session)
    site = location / "lib" / f"python{PYTHON}" / "site-packages"
    pins = ROOT / "containers" / "pins" / f"{group}.txt"
    marker = location / f"installed-{group}.txt"  # the requirements, an empty line, and what they installed
    for known in location.glob("installed-*.txt"):
        if lost := sorted(set(known.read_text().partition("\n\n")[2].split()) - modules_in(site)):
            make_anew(session, f"has lost {lost[0]}")
            break
    wanted = pins.read_text().strip() + "\n\n"
    if not marker.exists() or not marker.read_text().startswith(wanted):
        # The file is complete. Without --no-deps the installer would add packages that pyproject.toml excludes.
        session.install("--require-hashes", "--no-deps", "--requirement", str(pins))
        if not (found := modules_in(site)):
            refuse(f"{site} is empty, although the installer ended well. Look at the configuration of uv and pip.")
        marker.write_text(wanted + "\n".join(sorted(found)))
    fcntl.flock(LOCK, fcntl.LOCK_UN)


def checked_location(session: nox.Session) -> Path:
    """Return the folder of the session's environment, which has Python ``PYTHON``."""
    if not session.virtualenv.is_sandboxed:
        refuse("labscale runs in environments with pinned packages. Leave --no-venv and --venv-backend out.")
    location = Path(session.virtualenv.location)
    for folder in (ROOT, location):
        if os.pathsep in str(folder):
            refuse(f"{folder} has {os.pathsep!r} in its path, which separates paths in PATH. Move it to another path.")
    if version_of(location) != PYTHON and sys.version_info[:2] == tuple(map(int, PYTHON.split("."))):
        make_anew(session, f"has Python {version_of(location)}, {PYTHON} is needed")
    if version_of(location) != PYTHON:
        refuse(
            f"Python {PYTHON} is needed, {sys.version.split()[0]} was found ({sys.executable}). This gets and uses it:"
            f" python3 -m uv tool run --python {PYTHON} --from 'nox[uv]' nox -s {session.name}"
        )
    return location


def version_of(location: Path) -> str | None:
    """Return the Python of an environment, such as ``3.12``; None if it does not say."""
    try:
        found = re.search(r"^version(?:_info)? = (\d+\.\d+)", (location / "pyvenv.cfg").read_text(), re.MULTILINE)
    except OSError:
        return None
    return found and found[1]


def modules_in(site: Path) -> set[str]:
    """Return what an import looks for in a folder of packages, and what says which versions they are."""
    paths = [*site.glob("*"), *site.glob("*/__init__.py")]
    return {path.relative_to(site).as_posix() for path in paths if path.name != "__pycache__" and " " not in path.name}


def make_anew(session: nox.Session, why: str) -> None:
    session.warn(f"{session.virtualenv.location} {why}. It is made anew.")
    shutil.rmtree(session.virtualenv.location)
    session.virtualenv.create()


def refuse(text: str) -> NoReturn:
    print(text, file=sys.stderr)
    raise SystemExit(NOT_AS_PINNED)


def run_module(session: nox.Session, module: str, *arguments: str) -> None:
    """Run one of our commands and end with its exit code; nox alone would end with 0 or 1.

    If nox is killed, the command ends in order (``suite.external.parent_death``). After Ctrl-C, nox waits for that; by
    default it would kill the command after half a second.

    Raises:
        SystemExit: the command did not end with 0.
    """
    try:
        session.run(
            "python", "-m", module, *arguments, *session.posargs,
            env={"LABSCALE_NOX_PID": str(os.getpid())}, interrupt_timeout=None,
        )  # fmt: skip
    except CommandFailed as error:
        raise SystemExit(error.return_code or 1) from None


@nox.session
def env_check(session: nox.Session) -> None:
    """Check driver, GPUs, rendering, NCCL and worker; name each fault and its repair: `-- --help` for more."""
    install(session, "suite")
    run_module(session, "suite", "env_check")


@nox.session
def plan(session: nox.Session) -> None:
    """Print every configuration of a matrix: its size, command and cost, or why it cannot run here."""
    install(session, "suite")
    run_module(session, "suite", "plan")


@nox.session
def bench(session: nox.Session) -> None:
    """Run a matrix (default: first on GPUs, else smoke), store and report it; continue after an interruption."""
    install(session, "report")
    if {"ray", "--launcher=ray"} & set(session.posargs):
        install(session, "ray")
    run_module(session, "suite", "bench")


@nox.session
def watch(session: nox.Session) -> None:
    """Train one configuration and show it in the browser of this machine, until Ctrl-C: `nox -s watch -- 'ant*'`."""
    install(session, "suite")
    run_module(session, "suite", "watch")


@nox.session
def store(session: nox.Session) -> None:
    """Store the finished runs of a campaign after losing its machine: `nox -s store -- runs/full`."""
    install(session, "suite")
    run_module(session, "suite", "store")


@nox.session
def build(session: nox.Session) -> None:
    """Build a container image (default: kitless), check it from inside, and name it only if it passes."""
    install(session, "suite")
    run_module(session, "suite", "build")


@nox.session
def report(session: nox.Session) -> None:
    """Build the HTML page of a results folder, e.g. `nox -s report -- runs/smoke`."""
    install(session, "report")
    run_module(session, "reports", "report")


@nox.session
def publish(session: nox.Session) -> None:
    """Build the site of every version in reports/results, with `latest` and a version switcher (default: site/)."""
    install(session, "report")
    run_module(session, "reports", "publish")


@nox.session
def export(session: nox.Session) -> None:
    """Write results for github-action-benchmark, Bencher, ReFrame or as CSV: `-- RESULTS --format csv`."""
    install(session, "report")
    run_module(session, "reports", "export")


@nox.session
def verify(session: nox.Session) -> None:
    """Compute all figures again from the samples: `nox -s verify -- RESULTS`. 21: a figure differs."""
    install(session, "report")
    run_module(session, "reports", "verify")


@nox.session
def submit(session: nox.Session) -> None:
    """Check results, copy them into reports/results and write the text of a pull request: `-- runs/full`."""
    install(session, "report")
    run_module(session, "reports", "submit")


@nox.session
def accept(session: nox.Session) -> None:
    """Is this machine as fast as published ones of its kind? `-- [RESULTS] [--baseline MODEL]`. 1: slow, 2: unknown."""
    install(session, "report")
    run_module(session, "suite", "accept")


@nox.session
def compare(session: nox.Session) -> None:
    """Compare two folders of results: `nox -s compare -- BEFORE AFTER`. 1: slower, 2: cannot be compared."""
    install(session, "report")
    run_module(session, "reports", "compare")


@nox.session
def learning_references(session: nox.Session) -> None:
    """Print catalog entries of what every sound run learns: `-- RESULTS... --at ITERATIONS`, one folder per seed."""
    install(session, "report")
    run_module(session, "reports", "learning_references")


@nox.session
def bundle(session: nox.Session) -> None:
    """Pack worker, assets and suite for a machine without internet, e.g. `nox -s bundle -- --out DIR`."""
    install(session, "report")
    run_module(session, "suite", "bundle")


@nox.session
def pins(session: nox.Session) -> None:
    """Resolve the hashed requirement files again (--upgrade: newer versions), and look up the images' digests."""
    install(session, "suite")
    run_module(session, "suite.launch.images.pins_command")


@nox.session
def pictures(session: nox.Session) -> None:
    """Draw a picture of each task for its page in the report, with Newton's renderer on the CPU."""
    install(session, "suite")
    run_module(session, "suite.install.task_pictures")


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, real training included; `-- --quick` leaves out what takes long."""
    install(session, "tests")
    at_the_same_time = ["--numprocesses=4", "--dist=loadfile", "--no-loadscope-reorder"]  # `-- -n 0`: one after another
    session.run("python", "-m", "pytest", *at_the_same_time, *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Try many more changed inputs than `tests` does, until one ends in a traceback or hangs."""
    install(session, "tests")
    session.run("python", "-m", "pytest", "tests/fuzz", "--hypothesis-profile=long", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check formatting, lint rules and types."""
    install(session, "lint")
    session.run("ruff", "format", "--check", ".")
    session.run("ruff", "check", ".")
    session.run("mypy")
