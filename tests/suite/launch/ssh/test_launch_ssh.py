"""The ssh launcher on real hosts with a real sshd each; ranks that are a few lines of Python stand for training."""

import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from suite.errors import SchedulerError
from suite.launch.nodes.supervisor import addresses
from suite.launch.ssh import run as ssh
from suite.launch.ssh.run import SshPlace
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Case, Launch
from tests.conftest import CaseMaker
from tests.fixtures.machines.ssh_hosts import HOSTS, SshHosts
from tests.fixtures.runs.real_runs import wait_until

# Goes on for as long as the file `go_on` is there.
RANK: Final = """
import faulthandler, os, signal, sys, time
from pathlib import Path
faulthandler.register(signal.SIGUSR1)
run_dir = Path(sys.argv[1])
(run_dir / f"started-{os.environ['LABSCALE_NODE_RANK']}").write_text(os.environ["LABSCALE_HEAD"])
while (run_dir / "go_on").exists():
    time.sleep(0.1)
sys.exit(int(sys.argv[2]))
"""
SLACK_S: Final = 15.0  # of a busy machine


@pytest.fixture
def place(ssh_hosts: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SshPlace:
    monkeypatch.setenv("PATH", str(ssh_hosts.ssh_program(tmp_path / "bin")), prepend=":")
    said: list[str] = []
    return SshPlace(hosts=HOSTS, config=ssh_hosts.config, say=said.append)


@pytest.fixture
def launch(make_case: CaseMaker, tmp_path: Path) -> Launch:
    case: Case = make_case(nnodes=2, nproc_per_node=1)
    run_dir = tmp_path / "r0"
    argv = (sys.executable, "-c", RANK, str(run_dir), "0")
    return Launch(case=case, round=0, argv=argv, env={}, run_dir=str(run_dir), grace_s=2.0)


def test_a_part_that_fails_ends_the_other(place: SshPlace, launch: Launch, tmp_path: Path) -> None:
    """The head goes on for ever, the other host's program ends with 3."""
    script = f"import os\nif os.environ['LABSCALE_NODE_RANK'] == '1': raise SystemExit(3)\n{RANK}"
    launch = replace(launch, argv=(sys.executable, "-c", script, str(tmp_path / "r0"), "0"))
    (tmp_path / "r0").mkdir()
    (tmp_path / "r0" / "go_on").touch()
    result = ssh.run(launch, place=place)
    assert (result.exit_code, result.ended_by) == (3, None)


def test_a_killed_guard_takes_its_part_with_it(ssh_hosts: SshHosts, place: SshPlace, launch: Launch) -> None:
    ended: list[LaunchResult] = []
    run_dir = Path(launch.run_dir)
    run_dir.mkdir()
    (run_dir / "go_on").touch()
    thread = threading.Thread(target=lambda: ended.append(ssh.run(launch, place=place)))
    thread.start()
    wait_until(lambda: len(list(run_dir.glob("started-*"))) == len(HOSTS), timeout_s=60, what="both ranks start")
    ssh_hosts.find("n1", "suite.launch.nodes.agent").kill()
    thread.join(launch.grace_s + SLACK_S)
    (result,) = ended
    assert result.ended_by == "lost"
    assert result.why is not None
    assert result.why.startswith("the connection to n1 ended")
    # Nobody on n1 is left to wait for its processes: the kernel ends one after another, each with its parent.
    wait_until(lambda: not any(map(ssh_hosts.programs, HOSTS)), timeout_s=SLACK_S, what="all processes end")


@pytest.mark.parametrize("ending", ["hung", "interrupted"])
def test_a_run_that_has_to_be_ended(
    ssh_hosts: SshHosts, place: SshPlace, launch: Launch, tmp_path: Path, ending: str
) -> None:
    (tmp_path / "r0").mkdir()
    (tmp_path / "r0" / "go_on").touch()
    stop = threading.Event()
    launch = replace(launch, case=replace(launch.case, hang_timeout_s=5.0 if ending == "hung" else 300.0))
    if ending == "interrupted":
        threading.Timer(2.0, stop.set).start()
    result = ssh.run(launch, place=place, stop=stop)
    assert result.ended_by == ending
    assert [ssh_hosts.programs(host) for host in HOSTS] == [[], []]
    if ending == "hung":
        for rank in (0, 1):
            log = tmp_path / "r0" / "logs" / f"node-{rank}" / "torchrun.log"
            assert "most recent call first" in log.read_text()


class CtrlC(threading.Event):
    """Pressed when both ranks are at work."""

    def __init__(self, run_dir: Path) -> None:
        super().__init__()
        self._run_dir = run_dir

    def is_set(self) -> bool:
        if len(list(self._run_dir.glob("started-*"))) == len(HOSTS):
            raise KeyboardInterrupt
        return False


def test_ctrl_c_ends_every_part(ssh_hosts: SshHosts, place: SshPlace, launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "r0").mkdir()
    (tmp_path / "r0" / "go_on").touch()
    with pytest.raises(KeyboardInterrupt):
        ssh.run(launch, place=place, stop=CtrlC(tmp_path / "r0"))
    assert [ssh_hosts.programs(host) for host in HOSTS] == [[], []]


def test_a_results_folder_that_is_not_shared_is_refused(
    ssh_hosts: SshHosts, place: SshPlace, launch: Launch, tmp_path: Path
) -> None:
    (tmp_path / "r0").mkdir()
    ssh_hosts.on("n2", "mount", "-t", "tmpfs", "tmpfs", str(tmp_path / "r0"))
    try:
        with pytest.raises(SchedulerError, match=r"n2 .*--out"):
            ssh.run(launch, place=place)
    finally:
        ssh_hosts.on("n2", "umount", str(tmp_path / "r0"))


def test_a_host_that_is_not_there(place: SshPlace, launch: Launch) -> None:
    with pytest.raises(SchedulerError, match="nowhere"):
        ssh.run(launch, place=replace(place, hosts=("n1", "nowhere")))


def test_addresses_of_hosts_one_of_which_is_this_machine() -> None:
    nowhere: Mapping[str, str | None] = {"address": None, "interface": None}
    ready = {"here": nowhere, "there": {"address": "127.0.0.1", "interface": "lo"}}
    here, there = addresses(ready)
    assert (here.address, here.interface) == ("127.0.0.1", "lo"), "that towards the other"
    assert str(there) == "there is 127.0.0.1 on lo"
    by_ipv6 = {"address": "fd00::2", "interface": None}
    with pytest.raises(SchedulerError, match=r"far .*fd00::2"):
        addresses({"there": ready["there"], "far": by_ipv6})
    with pytest.raises(SchedulerError, match="here, there"):
        addresses({"here": nowhere, "there": nowhere})


def test_each_host_runs_its_part_and_knows_the_heads_address(place: SshPlace, launch: Launch) -> None:
    result = ssh.run(launch, place=place)
    assert (result.exit_code, result.ended_by, result.why) == (0, None, None)
    assert [(Path(launch.run_dir) / f"started-{rank}").read_text() for rank in (0, 1)] == ["10.77.0.11"] * 2
