"""What a pod of Kubernetes does: its script, run for real, and the record that it writes."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from suite.campaign.record_round import record as write_record
from suite.external.machine import num_usable_cpus
from suite.files.paths import ROOT
from suite.install.worker import Worker
from suite.launch import manifests
from suite.launch.images import worker as image_worker
from suite.launch.images.table import SUITE_PYTHON
from suite.launch.nodes.node import HEAD, NODE_RANK, PEER, RENDEZVOUS_PORT
from suite.records.store import read_case, read_record
from suite.schema.rank_protocol import CONFIGURATION_FILE, text_of
from suite.schema.record import Case, Launch
from tests.conftest import CaseMaker
from tests.fixtures.machines.free_ports import rendezvous_port
from tests.fixtures.machines.ssh_hosts import HOSTS, SshHosts
from tests.fixtures.runs.real_runs import launch_of, wait_until
from tests.suite.launch.test_manifests import DIGEST, NODES, OPTIONS


@pytest.fixture
def round_of_pods(make_case: CaseMaker, tmp_path: Path) -> tuple[Path, Case]:
    """A run directory, and its case of two nodes."""
    case = make_case(nnodes=2, nproc_per_node=1)
    run_dir = tmp_path / "out" / "raw" / case.case_id / "r0"
    run_dir.mkdir(parents=True)
    return run_dir, case


def test_a_round_of_pods_and_its_commit_and_image(
    round_of_pods: tuple[Path, Case], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pods run in a copy of labscale without git, as in the image."""
    (tmp_path / "origin.json").write_text('{"suite_commit": "c0ffee", "suite_dirty": false}', encoding="utf-8")
    monkeypatch.setattr("suite.external.machine.ROOT", tmp_path)
    monkeypatch.setenv(image_worker.DIGEST, DIGEST)
    run_dir, case = round_of_pods
    (run_dir / CONFIGURATION_FILE).write_text(text_of(case), encoding="utf-8")
    record = write_record(run_dir, rounds=1, exit_code=1, started_unix_s=0.0)
    assert (record.environment.git_commit, record.environment.git_dirty) == ("c0ffee", False)
    assert record.image_digest == DIGEST


@pytest.mark.parametrize(
    ("code", "limit_s", "ended", "outcome", "label"),
    [(3, "60", 3, "crashed", "8 x L40S, lab's"), (0, "1", 124, "timeout", "")],
)
def test_the_script_of_a_pod_writes_the_record_and_the_case(
    round_of_pods: tuple[Path, Case], code: int, limit_s: str, ended: int, outcome: str, label: str
) -> None:
    """A program that fails or goes on stands for training; labscale's own Python makes the record, as in the image."""
    run_dir, case = round_of_pods
    training = f"import sys, time; sys.exit({code} or time.sleep(60))"
    argv = pod_of(run_dir, case, sys.executable, "-c", training, limit_s=limit_s, label=label)
    for rank in (1, 0):
        assert not (run_dir / "record.json").exists(), "the head writes it"
        assert subprocess.run(argv, cwd=ROOT, env=environ_of(rank), check=False).returncode == ended
    record = read_record(run_dir / "record.json")
    assert (record.outcome, record.exit_code, record.case) == (outcome, ended, case)
    assert record.environment.host_label == (label or None)
    assert read_case(run_dir.parents[3] / "cases" / f"{case.case_id}.json").rounds == (record,)


STOPPABLE: Final = """
import json, pathlib, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})  # timeout(1) sends it twice
with open(pathlib.Path(sys.argv[1]) / "rank-0.jsonl", "a") as stream:
    stream.write(json.dumps({"event": "start", "rank": 0, "local_rank": 0}) + chr(10))
print("training", flush=True)
signal.sigwait({signal.SIGTERM})
sys.exit("told to stop")
"""


def pod_of(run_dir: Path, case: Case, *training: str, limit_s: str = "20", label: str = "") -> tuple[str, ...]:
    """The command of a pod that has nobody to wait for, with this for training."""
    (file := run_dir.parent / CONFIGURATION_FILE).write_text(text_of(case), encoding="utf-8")
    script = manifests._NODE.replace(manifests.CONFIGURATION, str(file))
    return ("sh", "-c", script, "node", sys.executable, str(run_dir), "1", "1", "1", limit_s, "1", label, *training)


def environ_of(rank: int) -> dict[str, str]:
    rest = {name: value for name, value in os.environ.items() if name != "ISAACSIM_ASSET_ROOT"}
    return {**rest, NODE_RANK: str(rank)}


def evict(argv: Sequence[str], run_dir: Path, rank: int) -> int:
    """Start a pod, tell it to stop once it trains, and return its exit code."""
    with subprocess.Popen(argv, cwd=ROOT, env=environ_of(rank)) as pod:
        log = run_dir / "logs" / f"node-{rank}" / "torchrun.log"
        wait_until(lambda: log.exists() and "training" in log.read_text(), timeout_s=30, what="it trains")
        pod.send_signal(signal.SIGTERM)
        return pod.wait(60)


def why_lost(run_dir: Path) -> str:
    record = read_record(run_dir / "record.json")
    assert record.outcome == "lost"
    return record.reason or ""


def test_a_pod_that_is_evicted_writes_the_record_of_its_attempt_alone(round_of_pods: tuple[Path, Case]) -> None:
    run_dir, case = round_of_pods
    names = ("rank-0.jsonl", "rank-1.jsonl", "telemetry-node-0.jsonl", "telemetry-node-1.jsonl")
    for name in names:  # of an attempt before it, of which the other node may have begun anew already
        (run_dir / name).write_text("earlier\n", encoding="utf-8")
    argv = pod_of(run_dir, case, sys.executable, "-c", STOPPABLE, str(run_dir))
    assert evict(argv, run_dir, 0) == 1
    assert why_lost(run_dir).startswith("node 0 got SIGTERM")
    assert [(run_dir / name).exists() for name in names] == [True, True, False, True]
    assert "earlier" not in (run_dir / "rank-0.jsonl").read_text(encoding="utf-8")
    samples = (run_dir / "rank-0.jsonl").read_bytes()
    again = subprocess.run(argv, cwd=ROOT, env=environ_of(0), check=False, capture_output=True, text=True)
    assert (again.returncode, "contains a finished run" in again.stderr) == (14, True)
    assert (run_dir / "rank-0.jsonl").read_bytes() == samples


def test_a_round_whose_other_pod_is_evicted_is_lost(round_of_pods: tuple[Path, Case]) -> None:
    """The errors that the head's ranks report about their peers follow from the eviction."""
    run_dir, case = round_of_pods
    assert evict(pod_of(run_dir, case, sys.executable, "-c", STOPPABLE, str(run_dir)), run_dir, 1) == 1
    done = subprocess.run(pod_of(run_dir, case, "sh", "-c", "exit 3"), cwd=ROOT, env=environ_of(0), check=False)
    assert done.returncode == 3
    assert why_lost(run_dir).startswith("node 1 got SIGTERM")


@pytest.mark.parametrize("says_why", [True, False])
def test_a_pod_whose_job_ends_it_because_another_failed_is_not_evicted(
    round_of_pods: tuple[Path, Case], says_why: bool
) -> None:
    run_dir, case = round_of_pods
    event = json.dumps({"event": "error", "type": "ValueError", "message": "bad"})
    failing = ("sh", "-c", f"echo {shlex.quote(event)} >{shlex.quote(str(run_dir / 'rank-1.jsonl'))}; exit 3")
    training = failing if says_why else ("sh", "-c", "kill -9 $$")
    assert subprocess.run(pod_of(run_dir, case, *training), cwd=ROOT, env=environ_of(1), check=False).returncode != 0
    if says_why:
        (run_dir / "logs" / "node-1" / "failed").unlink()  # its ranks say so before its torchrun has ended
    assert evict(pod_of(run_dir, case, sys.executable, "-c", STOPPABLE, str(run_dir)), run_dir, 0) == 1
    record = read_record(run_dir / "record.json")
    assert record.outcome == "crashed"
    assert ("rank 1: ValueError: bad" in (record.reason or "")) == says_why


def rendered_pod(launch: Launch, folder: Path) -> tuple[list[str], dict[str, str]]:
    """The command of a round's pods, and its variables. What would be mounted is a file of ``folder``."""
    config_map, _, job = manifests.round_of_nodes(launch, OPTIONS, 1)["items"]
    (folder / CONFIGURATION_FILE).write_text(config_map["data"][CONFIGURATION_FILE], encoding="utf-8")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    argv = [
        part.replace(manifests.CONFIGURATION, str(folder / CONFIGURATION_FILE)).replace(SUITE_PYTHON, sys.executable)
        for part in container["command"]
    ]
    return argv, {item["name"]: item["value"] for item in container["env"] if "value" in item}


def test_a_pod_waits_for_a_later_one_and_its_time_is_not_counted(
    round_of_pods: tuple[Path, Case], tmp_path: Path
) -> None:
    """Node 1's image is there at once, the head's three seconds later; each may train for two."""
    run_dir, case = round_of_pods
    launch = replace(NODES, case=replace(case, timeout_s=2.0), run_dir=str(run_dir), argv=("sleep", "0.1"))
    argv, _ = rendered_pod(launch, tmp_path)
    env = {"PATH": os.environ["PATH"], HEAD: "localhost", RENDEZVOUS_PORT: str(rendezvous_port())}
    env["OMP_NUM_THREADS"] = "1"
    with subprocess.Popen(argv, cwd=ROOT, env={**env, NODE_RANK: "1"}, start_new_session=True) as early:
        try:
            time.sleep(3.0)
            assert early.poll() is None
            assert subprocess.run(argv, cwd=ROOT, env={**env, NODE_RANK: "0"}, check=False).returncode == 0
            assert early.wait(10) == 0
        finally:  # it would wait an hour for a head that failed
            with suppress(ProcessLookupError):
                os.killpg(early.pid, signal.SIGKILL)
    assert read_record(run_dir / "record.json").exit_code == 0


@pytest.mark.parametrize(("cpu_threads", "expected"), [(None, max(1, num_usable_cpus() // 2)), (3, 3)])
def test_a_pod_has_the_threads_of_its_case_or_a_share_of_its_quota(
    make_case: CaseMaker, tmp_path: Path, cpu_threads: int | None, expected: int
) -> None:
    """nproc, here of a node with 4096 cores, does not know how many of them a pod may use."""
    case = make_case(nnodes=1, nproc_per_node=2, division="open", cpu_threads=cpu_threads)
    run_dir = tmp_path / "r0"
    argv, _ = rendered_pod(
        replace(NODES, case=case, run_dir=str(run_dir), argv=("sh", "-c", "echo $OMP_NUM_THREADS")), tmp_path
    )
    (tmp_path / "nproc").write_text("#!/bin/sh\necho 4096\n", encoding="utf-8")
    (tmp_path / "nproc").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", NODE_RANK: "1"}
    assert subprocess.run(argv, cwd=ROOT, env=env, check=False, timeout=60).returncode == 0
    assert int((run_dir / "logs" / "node-1" / "torchrun.log").read_text()) == expected


@pytest.mark.slow
def test_the_pods_of_a_round_train_on_two_hosts(
    ssh_hosts: SshHosts, worker: Worker, round_of_pods: tuple[Path, Case], tmp_path: Path
) -> None:
    """Their commands and variables as rendered, the real worker; Kubernetes itself and its names are not there."""
    run_dir, case = round_of_pods
    argv, rendered = rendered_pod(launch_of(worker, case, run_dir), tmp_path)
    pods = []
    for rank, host in enumerate(HOSTS):
        names = {NODE_RANK: str(rank), HEAD: HOSTS[0], PEER: HOSTS[1], "PATH": os.environ["PATH"]}
        env = rendered | names | {"ISAACSIM_ASSET_ROOT": str(tmp_path / f"assets-{rank}")}
        pods.append(subprocess.Popen(ssh_hosts.argv(*argv, on=host), env=env, cwd=ROOT))
    assert [pod.wait(300) for pod in pods] == [0, 0]
    record = read_record(run_dir / "record.json")
    assert record.outcome == "completed", record.reason
    assert record.environment.asset_sha256 == worker.asset_sha256
    assert read_case(tmp_path / "out" / "cases" / f"{case.case_id}.json").completed == (record,)
