"""A real Slurm for tests, from Debian's packages, started by hand: no systemd, no munge, no accounting.

The login machine and every node are a process tree of their own with its own network, host name, processes and mounts,
made of Linux namespaces. Ending the first process of one ends all of it, which is what a node that dies looks like, and
nothing is left behind: no network device, no mount, no file outside the test's folder, even when pytest is killed.
"""

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil
import pytest

from tests.container_engine import install

PROGRAMS: Final = {"slurmctld": "slurmctld", "slurmd": "slurmd", "srun": "slurm-client", "ip": "iproute2"}
LOGIN: Final = "login"
NODES: Final = ("n1", "n2", "n3")
START_PATIENCE_S: Final = 60.0  # a node starts within a second; a busy machine is not a fault
_PATH: Final = os.environ["PATH"]  # without what ``programs`` puts before it, which would enter a host twice
# Slurm's SlurmdTimeout: a node that is silent for so long is down. An env_check beside a dead node takes 12 s, and more
# on a busy machine; then its job was ended before it had answered.
NODE_LOST_S: Final = 25
# A node that did not answer within MessageTimeout when slurmctld told it that a job has ended is told again after more
# than a minute (77 s were seen on a busy machine). Until then it is "completing".
TOLD_AGAIN_S: Final = 90.0

# The first process of a host; it goes on when its network is there, and reaps what others leave to it.
_INIT: Final = r"""
set -e
host=$1 folder=$2; shift 2
hostname "$host"
mount --bind "$folder/hosts" /etc/hosts
mount --bind "$folder/nsswitch.conf" /etc/nsswitch.conf
ip link set lo up
echo ready
read -r _
"$@" &
wait
"""
_CONFIGURATION: Final = """
ClusterName=labscale
SlurmctldHost={login}(10.77.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0
ReturnToService=2
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmdTimeout={node_lost_s}
KillWait=10
MessageTimeout=4
PropagateResourceLimits=NONE
NodeName={nodes} CPUs=2 RealMemory=2000 State=UNKNOWN
PartitionName=debug Nodes=ALL Default=YES MaxTime=30 State=UP
"""


@dataclass(frozen=True, kw_only=True)
class Host:
    """A login machine or a node that runs."""

    name: str
    outer: subprocess.Popen[bytes]  # holds the namespaces' first process, and dies with pytest
    first_pid: int

    def argv(self, *command: str) -> list[str]:
        """The command, run on this host."""
        return [
            "nsenter",
            f"--target={self.first_pid}",
            "--net",
            "--uts",
            "--mount",
            "--pid",
            f"--wd={Path.cwd()}",
            *command,
        ]

    def kill(self) -> None:
        """End every process of the host at once, as a power cut does."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.first_pid, signal.SIGKILL)
        self.outer.wait(START_PATIENCE_S)


@dataclass(frozen=True, kw_only=True)
class SlurmCluster:
    """A cluster of this test session; every node has its own address."""

    folder: Path
    hosts: dict[str, Host] = field(default_factory=dict)

    @property
    def environ(self) -> dict[str, str]:
        """The environment for commands of Slurm."""
        return {**os.environ, "PATH": _PATH, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def argv(self, *command: str) -> list[str]:
        """The command, run on the login machine."""
        return self.hosts[LOGIN].argv(*command)

    def run(
        self, *command: str, environ: Mapping[str, str] | None = None, timeout_s: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on the login machine, to its end whatever that is."""
        return subprocess.run(
            self.argv(*command),
            env={**self.environ, **(environ or {})},
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )

    def ask(self, *command: str) -> str:
        """Run a command of Slurm that has to work."""
        done = self.run(*command)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def start_node(self, name: str, *, through: Sequence[str] = ()) -> None:
        """Start a node, or start it again after ``kill``; ``through``: a command before slurmd's, such as a limit."""
        self.hosts[name] = self._host(name, *through, "slurmd", "-D", "-N", name, "-f", self.environ["SLURM_CONF"])

    def kill_node(self, name: str) -> None:
        self.hosts[name].kill()

    @contextlib.contextmanager
    def drained(self, name: str) -> Iterator[None]:
        """Take a node out of service for the block, as an administrator does."""
        self.ask("scontrol", "update", f"NodeName={name}", "State=DRAIN", "Reason=test")
        try:
            yield
        finally:
            self.ask("scontrol", "update", f"NodeName={name}", "State=RESUME")

    def link(self, name: str, state: str) -> None:
        """Set the node's network ``up`` or ``down``."""
        subprocess.run(self.hosts[name].argv("ip", "link", "set", "eth0", state), check=True)

    def start_controller(self) -> None:
        """Start slurmctld again, which knows what it knew."""
        (self.folder / "no_controller").unlink(missing_ok=True)

    def kill_controller(self) -> None:
        (self.folder / "no_controller").touch()
        for process in psutil.Process(self.hosts[LOGIN].first_pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):  # another's short sleep
                if process.name() == "slurmctld":
                    process.kill()

    def programs(self, folder: Path) -> Path:
        """A folder with Slurm's commands, which run on the login machine from wherever they are called."""
        for name in ("sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun"):
            path = folder / name
            path.write_text(
                f'#!/bin/sh\nPATH={shlex.quote(os.environ["PATH"])} exec {shlex.join(self.argv(name))} "$@"\n'
            )
            path.chmod(0o755)
        return folder

    def await_idle(self) -> None:
        """Wait until every node is there and has nothing to do."""
        deadline_s = time.monotonic() + TOLD_AGAIN_S + START_PATIENCE_S
        while (states := self.run("sinfo", "--noheader", "--Node", "--format=%N %T").stdout.split("\n")[:-1]) != [
            f"{name} idle" for name in NODES
        ]:
            assert time.monotonic() < deadline_s, f"{states}\n{self.logs()}"
            time.sleep(0.1)

    def logs(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def _host(self, name: str, *program: str) -> Host:
        isolated = ["unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        with (self.folder / f"{name}.log").open("ab") as log:
            outer = subprocess.Popen(
                [
                    "setpriv",
                    "--pdeathsig",
                    "KILL",
                    *isolated,
                    "bash",
                    "-c",
                    _INIT,
                    "init",
                    name,
                    str(self.folder),
                    *program,
                ],
                env=self.environ,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the tests
            )
        assert outer.stdin
        assert outer.stdout
        with outer.stdin, outer.stdout:
            if outer.stdout.readline() != b"ready\n":
                outer.wait(START_PATIENCE_S)
                pytest.skip(f"namespaces cannot be made here: {(self.folder / f'{name}.log').read_text()[-500:]}")
            (first,) = psutil.Process(outer.pid).children()
            host = Host(name=name, outer=outer, first_pid=first.pid)
            self._connect(host)
            outer.stdin.write(b"go\n")
        return host

    def _connect(self, host: Host) -> None:
        """Give the host its address on the cluster's network, which is a bridge on the login machine."""
        if host.name == LOGIN:
            commands = [
                (host, "ip link add eth0 type bridge"),
                (host, "ip addr add 10.77.0.1/24 dev eth0"),
                (host, "ip link set eth0 up"),
            ]
        else:
            login, cable = self.hosts[LOGIN], f"to-{host.name}-{host.first_pid}"[:15]
            commands = [
                (login, f"ip link add {cable} type veth peer name eth0 netns {host.first_pid}"),
                (login, f"ip link set {cable} master eth0 up"),
                (host, f"ip addr add {address(host.name)}/24 dev eth0"),
                (host, "ip link set eth0 up"),
            ]
        for where, command in commands:
            subprocess.run(["nsenter", f"--target={where.first_pid}", "--net", *command.split()], check=True)


def address(node: str) -> str:
    return f"10.77.0.{11 + NODES.index(node)}"


@contextlib.contextmanager
def started_cluster(folder: Path) -> Iterator[SlurmCluster]:
    """Start a cluster whose files are all in ``folder``, and end every process of it whatever happens."""
    (folder / "state").mkdir(parents=True)
    hosts = [f"{address(node)} {node}" for node in NODES]
    (folder / "hosts").write_text("\n".join(["127.0.0.1 localhost", f"10.77.0.1 {LOGIN}", *hosts]) + "\n")
    (folder / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
    configuration = _CONFIGURATION.format(login=LOGIN, folder=folder, nodes=",".join(NODES), node_lost_s=NODE_LOST_S)
    (folder / "slurm.conf").write_text(configuration)
    cluster = SlurmCluster(folder=folder)
    try:
        again = ("sh", "-c", 'while :; do [ -e "$0" ] || "$@"; sleep 0.2; done', str(folder / "no_controller"))
        cluster.hosts[LOGIN] = cluster._host(LOGIN, *again, "slurmctld", "-D", "-f", str(folder / "slurm.conf"))
        for node in NODES:
            (folder / node).mkdir()
            cluster.start_node(node)
        cluster.await_idle()
        yield cluster
    finally:
        for host in cluster.hosts.values():
            host.kill()


@pytest.fixture(scope="session")
def running_slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Start a cluster; skip where that is not possible, and say why."""
    if os.geteuid() != 0:
        pytest.skip("needs root: the nodes are made of namespaces")
    install(PROGRAMS)
    with started_cluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture
def slurm(running_slurm: SlurmCluster) -> Iterator[SlurmCluster]:
    """The cluster for one test, at whose end no job may be left. Nodes that the test killed are started again."""
    yield running_slurm
    running_slurm.start_controller()
    jobs = running_slurm.ask("squeue", "--noheader", "--format=%i %T %j").splitlines()
    left = [line for line in jobs if " COMPLETING " not in line]  # one whose node died stays so until the node is back
    for line in left:
        running_slurm.run("scancel", line.split()[0])
    for node in NODES:
        if running_slurm.hosts[node].outer.poll() is not None:
            # Else Slurm may wait for minutes for the end of a job that ended together with the node.
            running_slurm.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=killed by a test")
            running_slurm.start_node(node)
    running_slurm.await_idle()
    assert left == []
