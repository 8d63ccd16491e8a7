"""Two hosts with an sshd each, and a third to start from: real networks, real ssh, keys made for this session alone.

They are the namespaces of tests/slurm_cluster.py without Slurm. Nothing below ~/.ssh is read or written.
"""

import contextlib
import os
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.container_engine import install
from tests.slurm_cluster import LOGIN, Host, SlurmCluster, address

PROGRAMS: Final = {"sshd": "openssh-server", "ssh": "openssh-client", "ip": "iproute2"}
HOSTS: Final = ("n1", "n2")
START_PATIENCE_S: Final = 10.0
_SSHD: Final = """
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
"""
_SSH: Final = """
Host n1 n2 nowhere
    User root
    IdentityFile {folder}/user_key
    IdentitiesOnly yes
    UserKnownHostsFile {folder}/known_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
"""


@dataclass(frozen=True, kw_only=True)
class SshHosts:
    folder: Path
    cluster: SlurmCluster

    @property
    def config(self) -> Path:
        return self.folder / "ssh_config"

    def argv(self, *command: str) -> list[str]:
        """The command, run where the campaign is started."""
        return self.cluster.argv(*command)

    def on(self, host: str, *command: str) -> None:
        subprocess.run(self.cluster.hosts[host].argv(*command), check=True)

    def link(self, host: str, state: str) -> None:
        """Set the host's network ``up`` or ``down``."""
        self.on(host, "ip", "link", "set", "eth0", state)

    def programs(self, host: str) -> list[psutil.Process]:
        """What runs on the host beside its init and sshd."""
        return [
            process
            for process in psutil.Process(self.cluster.hosts[host].first_pid).children(recursive=True)
            if process.status() != psutil.STATUS_ZOMBIE and process.name() != "sshd"
        ]

    def find(self, host: str, word: str, *, without: str = "") -> psutil.Process:
        """The one process of the host with this word in its command line, and without that one."""
        lines = {process: process.cmdline() for process in self.programs(host)}
        (found,) = (process for process, line in lines.items() if word in line and without not in line)
        return found

    def ssh_program(self, folder: Path) -> Path:
        """A folder with an ``ssh`` that starts on the first machine from wherever it is called."""
        folder.mkdir()
        path = folder / "ssh"
        path.write_text(f'#!/bin/sh\nexec {shlex.join(self.argv("/usr/bin/ssh"))} "$@"\n')
        path.chmod(0o755)
        return folder

    def kill(self) -> None:
        for host in self.cluster.hosts.values():
            host.kill()

    def _start_sshd(self, host: str) -> Host:
        # sshd wants a folder of its own below /run, which then is this host's alone
        script = 'mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "$@"'
        return self.cluster._host(
            host, "sh", "-c", script, "sh", "/usr/sbin/sshd", "-D", "-e", "-f", str(self.folder / "sshd_config")
        )

    def _await_sshd(self, host: str) -> None:
        deadline_s = time.monotonic() + START_PATIENCE_S
        argv = self.argv("ssh", "-F", str(self.config), "-o", "BatchMode=yes", host, "true")
        while (done := subprocess.run(argv, capture_output=True, text=True, check=False)).returncode:
            assert time.monotonic() < deadline_s, f"{done.stderr}\n{self.cluster.logs()}"
            time.sleep(0.1)


def _make_keys(folder: Path) -> None:
    for name in ("host_key", "user_key"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    kind, key, *_ = (folder / "host_key.pub").read_text().split()
    (folder / "known_hosts").write_text("".join(f"{host},{address(host)} {kind} {key}\n" for host in HOSTS))
    (folder / "sshd_config").write_text(_SSHD.format(folder=folder))
    (folder / "ssh_config").write_text(_SSH.format(folder=folder))


@pytest.fixture(scope="session")
def running_ssh_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshHosts]:
    """Start the hosts; skip where that is not possible, and say why."""
    if os.geteuid() != 0:
        pytest.skip("needs root: the hosts are made of namespaces")
    install(PROGRAMS)
    folder = tmp_path_factory.mktemp("ssh")
    names = [f"{address(host)} {host}" for host in HOSTS]
    (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", f"10.77.0.1 {LOGIN}", *names]) + "\n")
    (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    _make_keys(folder)
    hosts = SshHosts(folder=folder, cluster=SlurmCluster(folder=folder))
    with contextlib.ExitStack() as stack:
        stack.callback(hosts.kill)
        hosts.cluster.hosts[LOGIN] = hosts.cluster._host(LOGIN, "sleep", "infinity")
        for host in HOSTS:
            hosts.cluster.hosts[host] = hosts._start_sshd(host)
        for host in HOSTS:
            hosts._await_sshd(host)
        yield hosts


@pytest.fixture
def ssh_hosts(running_ssh_hosts: SshHosts) -> Iterator[SshHosts]:
    """The hosts for one test, at whose end nothing may run on them and their links are up."""
    yield running_ssh_hosts
    for host in HOSTS:
        running_ssh_hosts.link(host, "up")
    left = [process for host in HOSTS for process in running_ssh_hosts.programs(host)]
    said = [process.cmdline() for process in left]
    for process in left:
        process.kill()
    assert said == []
