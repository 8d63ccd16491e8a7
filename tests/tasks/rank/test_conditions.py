"""Conditions of an iteration: real counters of this machine's threads and real probes; only the GPU is a fake."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from suite.external.core_probe import TRIES
from tasks.rank.conditions import LINE, LOADS, Conditions, MemoryProbe, Thread, between


def busy(seconds: float) -> None:
    until_s = time.thread_time() + seconds
    while time.thread_time() < until_s:
        pass


@pytest.fixture
def rival() -> Iterator[None]:
    """This thread shares one core with a process that never sleeps."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # the process inherits it
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    process.kill()
    process.wait()
    os.sched_setaffinity(0, cores)


@pytest.mark.usefixtures("rival")
def test_a_busy_thread_uses_and_loses_its_core_and_an_idle_one_does_not() -> None:
    conditions = Conditions(on_gpu=False)
    conditions.begin(steal=True)
    busy(0.2)
    worked = conditions.end(marked=True, long_enough=False)
    conditions.begin(steal=False)
    time.sleep(0.2)
    slept = conditions.end(marked=False, long_enough=False)
    idle, used = ({name: value for name, value in columns.items() if value is not None} for columns in (slept, worked))
    assert idle["core_cpu_time_s"] < 0.02
    assert used["core_cpu_time_s"] >= 0.2
    assert idle["core_wait_time_s"] < used["core_wait_time_s"]
    assert used["core_switches"] >= 1
    assert used["core_steal_time_s"] >= 0
    assert 1e-6 < used["core_probe_time_s"] < 0.1
    assert 1e-9 < used["memory_probe_time_s"] < 1e-4
    assert slept.keys() - idle.keys() == {
        "core_steal_time_s", "core_probe_time_s", "memory_probe_time_s", "launch_probe_time_s",
    }  # fmt: skip


def test_a_kernel_that_does_not_count_gives_nothing_but_cpu_time(tmp_path: Path) -> None:
    thread = Thread(tmp_path)
    begun = thread.counters(steal=True)
    (tmp_path / "thread-self").mkdir()
    (tmp_path / "thread-self" / "schedstat").write_text("0 0 0\n")  # built without scheduler statistics
    busy(0.01)
    ended = thread.counters(steal=True), Thread(tmp_path).counters(steal=True)
    for counters in ended:
        columns = between(begun, counters)
        used_s = columns.pop("core_cpu_time_s")
        assert used_s is not None
        assert used_s >= 0.01
        assert set(columns.values()) == {None}


def test_steal_is_that_of_the_core_of_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "thread-self").mkdir()
    (tmp_path / "thread-self" / "schedstat").write_text("5000 7000 2\n")
    stat = tmp_path / "stat"
    lines = "cpu  9 9 9 9 9 9 9 {0} 9 9\ncpu1 9 9 9 9 9 9 9 9 9 9\ncpu11 1 2 3 4 5 6 7 {0} 0 0\nintr 5 5\n"
    stat.write_text(lines.format(100))
    monkeypatch.setattr("os.cpu_count", lambda: 12)
    thread = Thread(tmp_path)
    thread._core = lambda: 11
    begun = thread.counters(steal=True)
    stat.write_text(lines.format(103))
    assert between(begun, thread.counters(steal=True))["core_steal_time_s"] == pytest.approx(0.03)
    assert between(begun, thread.counters(steal=True) | {"core": 1})["core_steal_time_s"] is None  # it moved
    thread._core = lambda: 12
    assert thread.counters(steal=True)["core_steal_time_s"] is None  # the kernel has no line for it


def test_loads_go_through_all_lines_once() -> None:
    probe = MemoryProbe(lines=LOADS * TRIES)
    places = [0]
    while (following := probe._next[places[-1]]) != 0:
        places.append(following)
    assert sorted(places) == [LINE * line for line in range(LOADS * TRIES)]
    assert probe.load_s() > 0
    assert probe._at == 0  # each load began where the one before led


def test_an_empty_kernel_is_launched_and_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    queue: list[int] = []

    def wait() -> None:
        time.sleep(0.001 * len(queue))
        queue.clear()

    cuda = SimpleNamespace(current_stream=lambda: SimpleNamespace(synchronize=wait), _sleep=queue.append)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    launch_s = Conditions(on_gpu=True).end(marked=True, long_enough=False)["launch_probe_time_s"]
    assert launch_s is not None
    assert launch_s >= 0.001
