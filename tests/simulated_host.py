"""A host for campaigns without training: a launcher that writes what ranks would."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from suite.env_check.report import Report
from suite.install.worker import Worker
from suite.launch import LaunchResult
from suite.launch.runtime import Runtime
from suite.launch.watch import prepare
from suite.schema.launch_result import EndedBy
from suite.schema.record import Launch
from tests.rank_events import end, head, iterations


@dataclass(kw_only=True)
class SimulatedHost:
    """Runs take ``wall_s``."""

    wall_s: float = 0.03
    reward: float | None = None  # of every iteration
    on_start: Callable[[Launch], None] = lambda _: None
    fails: Callable[[Launch], bool] = lambda _: False
    ran: list[Launch] = field(default_factory=list)

    def launch(
        self, launch: Launch, *, on_progress: Callable[[int], None] | None = None, stop: Event | None = None
    ) -> LaunchResult:
        """See ``suite.launch.Launcher``."""
        prepare(Path(launch.run_dir), launch.case)
        self.on_start(launch)
        if on_progress is not None:
            on_progress(1)
        if (stop or Event()).wait(self.wall_s):
            return _result("interrupted", self.wall_s)
        if self.fails(launch):
            return _result(None, self.wall_s, exit_code=1)
        _write(launch, time_s=0.5, reward=self.reward)
        self.ran.append(launch)
        return _result(None, self.wall_s)

    def runtime(self) -> Runtime:
        worker = Worker(
            python=Path("python"),
            pins_sha256=None,
            asset_root=Path("assets"),
            asset_sha256=None,
            cache_dir=Path("cache"),
        )
        return Runtime(worker=worker, launch=self.launch, check=_unchecked, python_path=None)


def _unchecked() -> Report:
    raise AssertionError("env_check is no part of these tests")


def _write(launch: Launch, *, time_s: float, reward: float | None) -> None:
    for rank in range(launch.case.world_size):
        samples = iterations(launch.case.iterations, iteration_time_s=time_s, reward_mean=reward)
        events = [*head(rank), *samples, *end()]
        text = "".join(json.dumps(event) + "\n" for event in events)
        (Path(launch.run_dir) / f"rank-{rank}.jsonl").write_text(text)


def _result(ended_by: EndedBy | None, wall_s: float, *, exit_code: int = 0) -> LaunchResult:
    return LaunchResult(
        exit_code=exit_code, ended_by=ended_by, started_utc="2026-11-21T10:00:00+00:00", wall_time_s=wall_s
    )
