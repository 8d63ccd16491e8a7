"""Launches of shell scripts in a busybox image: what tests of the container launcher share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from suite.external.docker_engine import Engine
from suite.launch.containers.run import ContainerOptions, run
from suite.schema.launch_result import LaunchResult
from suite.schema.record import Case, Launch
from tests.container_engine import BUSYBOX

MakeScript = Callable[..., Launch]
RunBusybox = Callable[..., LaunchResult]

# What the scripts start with; `emit 0 iteration` is what a rank writes.
PREAMBLE = """
cd "$RUN_DIR"
emit() { printf '{"event": "%s"}\\n' "$2" >> "rank-$1.jsonl"; }
"""
STUBBORN = "trap '' TERM; while true; do emit 0 iteration; sleep 0.2; done"


@pytest.fixture
def make_script(tmp_path: Path, make_case: Callable[..., Case]) -> MakeScript:
    def make(script: str, *, grace_s: float = 1.0, **case_changes: float) -> Launch:
        run_dir = tmp_path / "r0"
        return Launch(
            case=make_case(**case_changes),
            round=0,
            argv=("/bin/sh", "-c", PREAMBLE + script),
            env={"RUN_DIR": str(run_dir)},
            run_dir=str(run_dir),
            grace_s=grace_s,
        )

    return make


@pytest.fixture
def mounted_project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "source.py").write_text("")
    return folder


@pytest.fixture
def run_busybox(engine: Engine, mounted_project: Path) -> RunBusybox:
    """Run a launch in the busybox image; the engine fixture asserts that no container is left."""

    def run_it(launch: Launch, **arguments: object) -> LaunchResult:
        options = {key: arguments.pop(key) for key in list(arguments) if key not in ("on_progress", "stop")}
        return run(
            launch,
            engine=engine,
            image=engine.find_image(BUSYBOX),
            options=ContainerOptions(project_root=mounted_project, **options),  # type: ignore[arg-type]
            **arguments,  # type: ignore[arg-type]
        )

    return run_it


def log_of(launch: Launch) -> str:
    return (Path(launch.run_dir) / "logs" / "torchrun.log").read_text()
