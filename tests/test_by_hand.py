"""Commands for people, against a golden file; bash has to accept them."""

import json
import shlex
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import pytest

from suite.campaign.record_round import Ended, record
from suite.errors import StoreError, UsageError
from suite.install.worker import Worker
from suite.launch.ssh.manual_commands import node_commands
from suite.options.options import ROOT
from suite.records.store import read_case
from suite.schema.record import Launch
from tests.real_runs import cartpole, matrix_of
from tests.ssh_hosts import HOSTS, SshHosts
from tests.test_plan import ANT, GOLDEN, launch_of

MATRIX: Final = matrix_of(cartpole("rsl_rl", topologies=["2x1"]))
NODES: Final = launch_of(replace(ANT, nnodes=2, case_id="ant/rl_games-kitless-n4096-2x2", num_envs_global=4096))


def lines_of(*addresses: str) -> str:
    return "\n".join(node_commands(NODES, addresses, rounds=3, suite_python="/suite/python", project_root="/project"))


def test_what_each_node_runs() -> None:
    text = lines_of("10.0.0.1", "10.0.0.2") + "\n"
    assert text == (GOLDEN / "node_commands.sh").read_text(encoding="utf-8")
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def written(run_dir: Path) -> set[str]:
    return {str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file()}


@pytest.fixture
def attempt(tmp_path: Path) -> Launch:
    """A round whose nodes begin by saying which one they are, and what an attempt that broke off left of it."""
    run_dir = tmp_path / "out" / "it's r0"
    left = ("rank-0.jsonl", "rank-3.jsonl", "bundle/b.json", "logs/node-0/x.log", "logs/node-1/x.log")
    for name in ("case.json", "notes.txt", "logs/nccl-rank-3.log", *left):
        (run_dir / name).parent.mkdir(parents=True, exist_ok=True)
        (run_dir / name).write_text("earlier", encoding="utf-8")
    program = ("sh", "-c", 'echo "$LABSCALE_NODE_RANK" >>"$0"; exit 3', f"{run_dir}/rank-1.jsonl")
    return replace(NODES, run_dir=str(run_dir), argv=(*program, *NODES.argv[4:]))


def typed(launch: Launch, rank: int) -> subprocess.CompletedProcess[str]:
    """Into an interactive shell, which goes on; labscale's own Python only says what it is asked."""
    text = "\n".join(node_commands(launch, rounds=3, suite_python="echo", project_root="/project"))
    _, *nodes = text.split("# node ")
    command = f"# node {nodes[rank]}\necho the shell goes on"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)


def test_an_attempt_that_broke_off_is_cleared_and_no_more_than_that(attempt: Launch) -> None:
    run_dir = Path(attempt.run_dir)
    assert typed(attempt, 1).stdout == "the shell goes on\n"
    assert (run_dir / "rank-1.jsonl").read_text() == "1\n"
    assert "logs/node-1/x.log" not in written(run_dir)
    assert {"rank-0.jsonl", "rank-3.jsonl", "logs/node-0/x.log"} < written(run_dir), "the head's"
    assert "--exit-code 3 --started-unix-s" in typed(attempt, 0).stdout
    assert (run_dir / "rank-1.jsonl").read_text() == "0\n", "of this attempt alone"
    assert written(run_dir) == {"case.json", "notes.txt", "rank-1.jsonl"}


@pytest.mark.parametrize("rank", [0, 1])
def test_a_finished_round_is_refused_and_stays(attempt: Launch, rank: int) -> None:
    run_dir = Path(attempt.run_dir)
    (run_dir / "record.json").touch()
    before = {name: (run_dir / name).read_bytes() for name in written(run_dir)}
    done = typed(attempt, rank)
    assert done.stdout == "the shell goes on\n"
    assert (
        done.stderr == f"{run_dir} holds a finished round, which is never overwritten. Move it away and plan again.\n"
    )
    assert {name: (run_dir / name).read_bytes() for name in written(run_dir)} == before


def test_without_addresses_there_are_words_to_replace() -> None:
    text = lines_of()
    assert "LABSCALE_HEAD=ADDRESS_OF_NODE_0 " in text
    assert "LABSCALE_PEER=ADDRESS_OF_NODE_1 " in text
    assert text.replace("ADDRESS_OF_NODE_0", "a").replace("ADDRESS_OF_NODE_1", "b") == lines_of("a", "b")


def test_the_record_has_the_label_of_the_host() -> None:
    lines = node_commands(NODES, rounds=1, suite_python="p", project_root="/project", host_label="lab's 8 x L40S")
    (recording,) = (shlex.split(line) for line in lines if "suite.campaign.record_round" in line)
    assert "--host-label=lab's 8 x L40S" in recording
    assert "--host-label" not in lines_of()


def test_too_few_addresses() -> None:
    with pytest.raises(UsageError, match="needs 2 nodes, --nodes names 1: gpu01"):
        lines_of("gpu01")


@pytest.mark.parametrize(
    ("case_id", "folder"), [("/".join(["a"] * 5000), "r0"), (NODES.case.case_id, "r00"), (NODES.case.case_id, "other")]
)
def test_a_folder_that_is_not_of_its_case_gets_no_record(case_id: str, folder: str, tmp_path: Path) -> None:
    run_dir = tmp_path / "raw" / NODES.case.case_id / folder
    run_dir.mkdir(parents=True)
    case = replace(NODES.case, case_id=case_id)
    (run_dir / "case.json").write_text(json.dumps(asdict(case)), encoding="utf-8")
    with pytest.raises(StoreError, match=r"is not (where round 0|the directory)"):
        record(run_dir, Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))
    assert written(run_dir) == {"case.json"}


@pytest.mark.parametrize("nnodes", [0, 10**10])
def test_a_case_that_no_machine_runs_gets_no_record(nnodes: int, tmp_path: Path) -> None:
    """Looking for each of its ranks took all memory."""
    run_dir = tmp_path / "raw" / NODES.case.case_id / "r0"
    run_dir.mkdir(parents=True)
    (run_dir / "case.json").write_text(json.dumps(asdict(replace(NODES.case, nnodes=nnodes))), encoding="utf-8")
    with pytest.raises(StoreError, match=rf"is of a case with {2 * nnodes} ranks, allowed are 1 to 1000000\."):
        record(run_dir, Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))


def test_the_plan_prints_them_and_makes_the_folder_that_the_ranks_read(tmp_path: Path) -> None:
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    out = tmp_path / "out"
    argv = ["plan", "--matrix", str(tmp_path / "matrix.toml"), "--device", "cpu", "--out", str(out)]
    done = subprocess.run(
        [sys.executable, "-m", "suite", *argv, "--node-commands", "--nodes", "10.0.0.1,10.0.0.2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    run_dir = out / "raw" / "cartpole" / "rsl_rl-kitless-cpu-n128-2x1" / "r0"
    assert "# node 1 of 2, 10.0.0.2:\n" in done.stdout
    assert f"-m suite.launch.nodes.node {run_dir}/logs" in done.stdout
    assert "not here" not in done.stdout
    assert [path.parent for path in out.rglob("case.json")] == [run_dir]


@pytest.mark.slow
def test_typed_on_two_hosts_they_train_to_a_record(ssh_hosts: SshHosts, worker: Worker, tmp_path: Path) -> None:
    assert worker.python.exists()
    (tmp_path / "matrix.toml").write_text(MATRIX, encoding="utf-8")
    argv = ["plan", "--matrix", str(tmp_path / "matrix.toml"), "--device", "cpu", "--out", str(tmp_path / "out")]
    printed = subprocess.run(
        [sys.executable, "-m", "suite", *argv, "--node-commands", "--nodes", "10.77.0.11,10.77.0.12"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    _, head, other = printed.partition("\n1 case can run")[0].split("# node ")
    typed = [
        subprocess.Popen(ssh_hosts.cluster.hosts[host].argv("bash", "-c", f"# node {text}"))
        for host, text in zip(HOSTS, (head, other), strict=True)
    ]
    assert [shell.wait(300) for shell in typed] == [0, 0]
    (path,) = (tmp_path / "out" / "cases").rglob("*.json")
    (record,) = read_case(path).rounds
    assert (record.outcome, record.reason) == ("completed", None)
