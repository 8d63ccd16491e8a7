"""The launcher ``ssh`` on real hosts with a real sshd each; a few lines of Python stand for training."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from suite.errors import SchedulerError
from suite.launch.nodes.ssh import SshSettings, run
from suite.launch.nodes.supervisor import addresses
from tests.fixtures.machines.ssh_hosts import HOSTS, SshHosts
from tests.suite.launch.contract import NodesContract, Place, Round


@pytest.fixture
def place(ssh_hosts: SshHosts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("PATH", str(ssh_hosts.ssh_program(tmp_path / "bin")), prepend=":")
    return Place(
        run=partial(run, settings=SshSettings(nodes=HOSTS, ssh_config=ssh_hosts.config), say=print),
        nnodes=len(HOSTS),
        helpers=lambda: [process for host in HOSTS for process in ssh_hosts.programs(host)],
        lose_node=lambda: ssh_hosts.find("n2", "suite.launch.nodes.agent").kill(),
    )


class TestSsh(NodesContract):
    def test_a_results_folder_that_is_not_shared_is_refused(self, ssh_hosts: SshHosts, stand_in: Round) -> None:
        stand_in.run_dir.mkdir()
        ssh_hosts.on("n2", "mount", "-t", "tmpfs", "tmpfs", str(stand_in.run_dir))
        try:
            with pytest.raises(SchedulerError, match=r"n2 .*--out"):
                stand_in.run()
        finally:
            ssh_hosts.on("n2", "umount", str(stand_in.run_dir))

    def test_a_host_that_is_not_there(self, ssh_hosts: SshHosts, stand_in: Round) -> None:
        settings = SshSettings(nodes=("n1", "nowhere"), ssh_config=ssh_hosts.config)
        with pytest.raises(SchedulerError, match="nowhere"):
            run(stand_in.launch, settings=settings, say=print)

    def test_each_host_runs_its_part_and_knows_the_heads_address(self, stand_in: Round) -> None:
        stand_in.end_with(0, 0)
        assert stand_in.run().exit_code == 0
        assert stand_in.log == "node 0 of 10.77.0.11\nnode 1 of 10.77.0.11\n"


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
