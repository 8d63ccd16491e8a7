"""What else is at work on the host: a real busy process, and counters whose answer is known."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from suite.env_check import host as cpu_load
from suite.env_check.host import Busy, LoadFacts, judge_cpu_load
from suite.env_check.host import read_load as read
from suite.external.host_cpu import Counters


@pytest.fixture
def busy_process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=-1) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def counted(*seconds: tuple[float, float, float, float]) -> Callable[[], Counters]:
    """Return a reader of four cores at 0 s and 1 s: idle, stolen, own and total seconds since."""
    readings = iter([(0.0, 0.0, 0.0, 0.0), *seconds])

    def counters() -> Counters:
        idle_s, stolen_s, own_s, total_s = next(readings)
        monotonic_s = total_s / 4
        return Counters(total_s=total_s, idle_s=idle_s, stolen_s=stolen_s, own_s=own_s, monotonic_s=monotonic_s)

    return counters


def test_a_busy_process_is_seen_and_named(
    busy_process: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other tests may leave it little of a core, so the host is watched until it has had ``had_s`` seconds of one."""
    had_s = 0.5
    slept_s: list[float] = []
    process = psutil.Process(busy_process.pid)

    def spent_s() -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    def sleep(_: float) -> None:
        before_s, begun_s = spent_s(), time.monotonic()
        while spent_s() < before_s + had_s:
            wait(0.05)
        slept_s.append(time.monotonic() - begun_s)

    wait = time.sleep
    monkeypatch.setattr(time, "sleep", sleep)
    monkeypatch.setattr(cpu_load, "NAMED", 1000)
    begun_s, before_s = time.monotonic(), spent_s()
    facts = read()
    all_spent_s, elapsed_s = spent_s() - before_s, time.monotonic() - begun_s
    assert facts.others_percent is not None
    assert facts.others_percent > 0.9 * 100 * had_s / elapsed_s / (psutil.cpu_count() or 1)  # its counters have ticks
    (busy,) = (one for one in facts.busiest if one.pid == busy_process.pid)
    assert 100 * had_s / elapsed_s <= busy.percent <= 100 * all_spent_s / slept_s[0]
    assert "python" in busy.name


def test_what_is_neither_idle_nor_stolen_nor_its_own_is_of_others() -> None:
    facts = read(0.0, counters=counted((2.9, 0.4, 0.1, 4.0)))
    assert facts.others_percent == pytest.approx(15.0)
    assert read(0.0, counters=counted((4.1, 0.0, 0.0, 4.0))).others_percent == 0.0  # idle time goes ahead by a tick


def test_counters_that_stand_still_say_nothing() -> None:
    check = judge_cpu_load(read(0.0, counters=counted((0.0, 0.0, 0.0, 0.0))))
    assert (check.verdict, check.found) == ("not_checked", "the kernel's counters of CPU time do not advance")


@pytest.mark.parametrize(("percent", "verdict"), [(0.0, "ok"), (5.0, "ok"), (5.1, "warning"), (100.0, "warning")])
def test_a_host_at_work_is_a_warning(percent: float, verdict: str) -> None:
    check = judge_cpu_load(LoadFacts(others_percent=percent, busiest=(), message=""))
    assert (check.verdict, check.fault) == (verdict, "host_busy" if verdict == "warning" else None)
    assert f"{percent:.1f} %" in check.found


def test_the_repair_names_who_and_the_record_does_not() -> None:
    """``found`` is published with every record; whose processes run is nobody's business."""
    busiest = (Busy(pid=7, name="make", percent=198.4), Busy(pid=9, name="rsync", percent=12.0))
    check = judge_cpu_load(LoadFacts(others_percent=52.0, busiest=busiest, message=""))
    assert "make (pid 7, 198 % of a core), rsync (pid 9" in (check.repair or "")
    assert "make" not in check.found
    unseen = judge_cpu_load(LoadFacts(others_percent=52.0, busiest=(), message=""))
    assert "pid" not in (unseen.repair or "pid")


def test_few_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spent = iter([{(pid, "x"): 0.0 for pid in range(10)}, {(pid, "x"): 0.05 * pid for pid in range(10)}])
    monkeypatch.setattr(cpu_load, "_cpu_times_s", lambda: next(spent))
    facts = read(0.0, counters=counted((0.0, 0.0, 0.0, 4.0)))
    assert [busy.pid for busy in facts.busiest] == [9, 8, 7]
    busiest, *_, least = facts.busiest
    assert busiest.percent / least.percent == pytest.approx(9 / 7)
