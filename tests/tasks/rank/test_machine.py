"""What a rank reads of its machine: NUMA nodes, compiled kernels, and the conditions of an iteration."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from suite.external.core_probe import TRIES
from tasks.rank import machine
from tasks.rank.conditions import LINE, LOADS, Conditions, MemoryProbe, Thread, between
from tasks.rank.kernel_cache import CACHES, compiled_kernels, compiled_since

GPU = SimpleNamespace(pci_domain_id=0, pci_bus_id=0x1B, pci_device_id=0)


@pytest.fixture
def two_nodes(tmp_path: Path) -> Path:
    for node, cores in ((0, (0, 1, 4, 5)), (1, (2, 3, 10))):
        for core in cores:
            (tmp_path / f"devices/system/node/node{node}/cpu{core}").mkdir(parents=True)
        (tmp_path / f"devices/system/node/node{node}/cpulist").touch()
    address = tmp_path / "bus/pci/devices/0000:1b:00.0"
    address.mkdir(parents=True)
    (address / "numa_node").write_text("1\n")
    return tmp_path


def test_the_node_of_a_gpu(two_nodes: Path) -> None:
    assert machine.node_of_gpu(GPU, two_nodes) == 1
    (two_nodes / "bus/pci/devices/0000:1b:00.0/numa_node").write_text("-1\n")  # as in most virtual machines
    assert machine.node_of_gpu(GPU, two_nodes) is None
    assert machine.node_of_gpu(SimpleNamespace(**{**vars(GPU), "pci_bus_id": 2}), two_nodes) is None
    assert machine.node_of_gpu(SimpleNamespace(), two_nodes) is None  # a torch that does not say where it is


def test_this_machine_says_the_same_as_lscpu() -> None:
    done = subprocess.run(["lscpu", "--parse=CPU,NODE"], capture_output=True, text=True, check=True)
    rows = [line.split(",") for line in done.stdout.splitlines() if not line.startswith("#")]
    cores = os.sched_getaffinity(0)
    nodes = {node for core, node in rows if int(core) in cores and node}
    assert machine.nodes_of_cores(cores) == (",".join(sorted(nodes, key=int)) or None)


def test_compiled_files_count_and_what_lies_beside_them_does_not(tmp_path: Path) -> None:
    warp, triton = tmp_path / "warp" / "1.17.0" / "wp_solver_a1b2", tmp_path / "triton" / "HASH"
    for folder in (warp, triton):
        folder.mkdir(parents=True)
    environ = {"WARP_CACHE_PATH": str(tmp_path / "warp"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    assert compiled_kernels(environ) == frozenset()
    made = frozenset(
        {warp / "wp_solver.sm90.ptx", warp / "wp_solver.o", triton / "triton_.cubin", triton / "launcher.so"}
    )
    for path in (*made, warp / "wp_solver.cu", warp / "wp_solver.meta", triton / "triton_.json"):
        path.touch()
    assert compiled_kernels(environ) == made
    (triton / "later.cubin").touch()
    assert compiled_since(made, environ) == 1


def test_without_a_named_cache_nothing_is_known_and_one_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert compiled_kernels(dict.fromkeys(CACHES, "")) is None
    assert compiled_since(None, {"WARP_CACHE_PATH": str(tmp_path)}) is None
    assert compiled_since(frozenset(), {}) is None
    assert compiled_kernels({"WARP_CACHE_PATH": str(tmp_path / "none")}) == frozenset()


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
