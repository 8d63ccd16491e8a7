"""Collecting from several nodes. Fake srun, scontrol and ssh on PATH stand in for a cluster, as is said at each."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from suite import __main__
from suite.env_check.nodes import collect_slurm, collect_ssh, differences, slurm_argv, slurm_nodes
from suite.env_check.report import Report, read_report
from suite.errors import UsageError
from suite.external.ssh import ssh_argv

COMMAND = ("python", "-m", "suite", "env_check", "--json")


def check(name: str, evidence: dict[str, Any], verdict: str = "ok", fault: str | None = None) -> dict[str, Any]:
    return {
        "name": name, "feature": "cuda", "verdict": verdict, "found": "something", "wanted": "something",
        "fault": fault, "repair": "mend it" if fault else None, "evidence": evidence,
    }  # fmt: skip


def report(
    host: str,
    *,
    driver: str = "580.65.06",
    gpus: int = 2,
    bandwidth: float = 250.0,
    has_tried_vulkan: bool = True,
    failure: str | None = None,
    **warnings: str,
) -> str:
    """Return what a node sends. ``failure``: of its driver; ``warnings``: name of a check -> its fault."""
    gpu = {"name": "NVIDIA H200", "memory_gb": 150.755, "sm_clock_max_mhz": 1980, "ecc": True}
    checks = [
        check("driver_versions", {"kernel_version": driver}, "failure" if failure else "ok", failure),
        check("gpus_present", {"gpus": [gpu] * gpus}),
        check("nccl_all_reduce", {"result": {"nccl": "2.28.9", "bus_bandwidth_gb_s": bandwidth}}),
        *(
            check(name, {}, "warning" if name in warnings else "ok", warnings.get(name))
            for name in ("persistence", "cpu_load", "gpu_throttling")
        ),
        {**check("vulkan_frame", {}, "ok" if has_tried_vulkan else "not_checked"), "feature": "vulkan"},
    ]
    needed = ["cuda", "host", "vulkan", "worker"]
    return json.dumps(
        {"host": host, "stack": "kitless", "device": "cuda", "needed": needed, "duration_s": 1.5, "checks": checks}
    )


def reports(**texts: str) -> dict[str, Report]:
    return {node: read_report(text) for node, text in texts.items()}


def test_alike_nodes_do_not_differ() -> None:
    """Nodes that differ are refused, and a process that ran for a second on one of them is no reason for that."""
    second = report("n2", bandwidth=240.0, cpu_load="host_busy", gpu_throttling="gpu_throttled")
    assert differences(reports(n1=report("n1"), n2=second)) == ()
    assert differences(reports(n1=report("n1"))) == ()
    assert differences({}) == ()


@pytest.mark.parametrize(
    ("other", "lines"),
    [
        ({"driver": "570.1"}, ["driver: 580.65.06 on n1, n2; 570.1 on n3"]),
        (
            {"gpus": 1},
            [
                "GPUs: 2 x NVIDIA H200 on n1, n2; 1 x NVIDIA H200 on n3",
                "GPU memory [GB]: 2 x 150.8 on n1, n2; 1 x 150.8 on n3",
                "highest SM clock [MHz]: 2 x 1980 on n1, n2; 1 x 1980 on n3",
                "ECC: 2 x True on n1, n2; 1 x True on n3",
            ],
        ),
        ({"bandwidth": 30.0}, ["NCCL bus bandwidth [GB/s]: 250.0 on n1, n2; 30.0 on n3"]),
        ({"persistence": "persistence_off"}, ["check persistence: ok on n1, n2; warning (persistence_off) on n3"]),
    ],
)
def test_the_node_that_differs_is_named(other: dict[str, Any], lines: list[str]) -> None:
    differing = differences(reports(n1=report("n1"), n2=report("n2"), n3=report("n3", **other)))
    assert [str(difference) for difference in differing] == lines


def test_a_check_that_a_node_does_not_report() -> None:
    short = json.loads(report("n2"))
    short["checks"] = short["checks"][:2]
    lines = [str(difference) for difference in differences(reports(n1=report("n1"), n2=json.dumps(short)))]
    assert "check persistence: ok on n1; not reported on n2" in lines
    assert "NCCL: 2.28.9 on n1; not reported on n2" in lines


def test_command_lines() -> None:
    argv = slurm_argv(COMMAND, nodes=("n1", "n2"), folder=Path("/shared/out"), timeout_s=90)
    assert argv == (
        "srun", "--nodelist=n1,n2", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--overlap", "--cpu-bind=none",
        "--kill-on-bad-exit=0", "--no-kill", "--wait=0", "--input=none", "--time=2", "sh", "-c",
        'exec "$@" >"$0/$SLURMD_NODENAME.json" 2>"$0/$SLURMD_NODENAME.txt"', "/shared/out", *COMMAND,
    )  # fmt: skip
    argv = ssh_argv(("python", "a b"), host="-oProxyCommand=x", working_dir=Path("/my checkout"))
    assert argv == (
        "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
        "-o", "AddressFamily=inet", "-T", "--", "-oProxyCommand=x", "cd '/my checkout' && exec python 'a b'",
    )  # fmt: skip
    argv = ssh_argv(("true",), host="n1", working_dir=Path("/"), config=Path("my config"))
    assert argv[:3] == ("ssh", "-F", "my config")


def fake_program(folder: Path, name: str, script: str) -> dict[str, str]:
    """Environment with a fake program of that name first on PATH."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!{sys.executable}\nimport os, sys, time\nfrom pathlib import Path\n{script}\n")
    path.chmod(0o755)
    return {**os.environ, "PATH": f"{path.parent}:{os.environ['PATH']}"}


def test_slurm_nodes(tmp_path: Path) -> None:
    """A fake scontrol expands the list."""
    environ = fake_program(
        tmp_path, "scontrol", "print('n1\\nn2' if sys.argv[1:] == ['show', 'hostnames', 'n[1-2]'] else 1)"
    )
    assert slurm_nodes({**environ, "SLURM_JOB_NODELIST": "n[1-2]"}) == ("n1", "n2")
    environ = fake_program(tmp_path, "scontrol", "sys.exit('no such list')")
    with pytest.raises(UsageError, match="no such list"):
        slurm_nodes({**environ, "SLURM_JOB_NODELIST": "n[1-"})
    with pytest.raises(UsageError, match="No such file"):
        slurm_nodes({"PATH": "/nowhere", "SLURM_JOB_NODELIST": "n1"})


def test_reports_of_a_slurm_allocation(tmp_path: Path) -> None:
    """A fake srun writes what the nodes would: two answer, one dies, one is silent, one talks nonsense."""
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "n1").write_text(report("n1"))
    (tmp_path / "n2").write_text(report("n2", driver="570.1"))
    script = f"""
folder, asked = Path("{out}"), sys.argv[1].removeprefix("--nodelist=").split(",")
for node in {{"n1", "n2"}}.intersection(asked):
    (folder / f"{{node}}.json").write_text(Path("{tmp_path}", node).read_text())
if "n3" in asked:
    (folder / "n3.json").write_text("")
    (folder / "n3.txt").write_text("slurmstepd: error: node failure\\n")
if "n5" in asked:
    (folder / "n5.json").write_text("hello")
print("srun: error: Task launch failed on node n4: connection failure\\nsrun: Job step aborted", file=sys.stderr)
sys.exit(2)
"""
    collected = collect_slurm(
        COMMAND, nodes=("n1", "n2", "n3", "n4", "n5"), folder=out, environ=fake_program(tmp_path, "srun", script)
    )
    assert {node: sent.host for node, sent in collected.reports.items()} == {"n1": "n1", "n2": "n2"}
    failures = {failure.node: failure for failure in collected.failures}
    without = collect_slurm(COMMAND, nodes=("n1",), folder=tmp_path, environ={"PATH": "/nowhere"})
    assert [(failure.node, failure.fault) for failure in without.failures] == [("n1", "not_started")]
    faults = {node: failure.fault for node, failure in failures.items()}
    assert faults == {"n3": "no_report", "n4": "no_report", "n5": "bad_report"}
    assert "node failure" in failures["n3"].message
    assert "connection failure" in failures["n4"].message
    assert "n3" in failures["n3"].repair


def test_reports_over_ssh(tmp_path: Path) -> None:
    """A fake ssh: good hosts answer with exit code 1 (warnings), the others fail as ssh does."""
    (tmp_path / "report").write_text(report("n"))
    script = f"""
host = sys.argv[sys.argv.index("--") + 1]
if host == "down":
    sys.exit(print("ssh: connect to host down port 22: No route to host", file=sys.stderr) or 255)
if host == "bare":
    sys.exit(print("sh: 1: exec: python: not found", file=sys.stderr) or 127)
if host == "slow":
    time.sleep(60)
if host == "chatty":
    print("Welcome to chatty!")
print(Path("{tmp_path}", "report").read_text())
sys.exit(1)
"""
    collected = collect_ssh(
        COMMAND,
        hosts=("n1", "down", "bare", "slow", "chatty", "n2"),
        working_dir=tmp_path,
        environ=fake_program(tmp_path, "ssh", script),
        timeout_s=3.0,
    )
    assert list(collected.reports) == ["n1", "n2"]
    failures = {failure.node: (failure.fault, failure.message) for failure in collected.failures}
    assert {node: fault for node, (fault, _) in failures.items()} == {
        "down": "unreachable", "bare": "no_report", "slow": "timed_out", "chatty": "bad_report",
    }  # fmt: skip
    assert "No route to host" in failures["down"][1]
    assert "Welcome to chatty!" in failures["chatty"][1]
    assert all(failure.repair for failure in collected.failures)


OFF: Final = "persistence_off"


@pytest.mark.parametrize(
    ("first", "second", "exit_code", "exit_codes", "differing", "shown"),
    [
        (report("n1"), report("n2"), 0, (0, 0), [], "2 nodes are alike"),
        (  # on both nodes: they do not differ
            report("n1", has_tried_vulkan=False), report("n2", has_tried_vulkan=False),
            1, (1, 1), [], "vulkan_frame: could not be made",
        ),
        (report("n1", persistence=OFF), report("n2", persistence=OFF), 1, (1, 1), [], "persistence: persistence_off"),
        (
            report("n1", persistence=OFF), report("n2", failure="no_driver"),
            2, (1, 2), ["check driver_versions", "check persistence"], "driver_versions: no_driver",
        ),
        (report("n1"), report("n2", driver="570.1"), 1, (0, 0), ["driver"], "570.1 on n2"),
        ("no report", report("n2"), 2, (None, 0), [], "bad_report"),
    ],
)  # fmt: skip
def test_the_worst_node_decides(
    first: str,
    second: str,
    exit_code: int,
    exit_codes: tuple[int | None, int],
    differing: list[str],
    shown: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A fake ssh: each host sends its own report."""
    (tmp_path / "n1").write_text(first)
    (tmp_path / "n2").write_text(second)
    answer = f'print(Path("{tmp_path}", sys.argv[sys.argv.index("--") + 1]).read_text())'
    monkeypatch.setenv("PATH", fake_program(tmp_path, "ssh", answer)["PATH"])
    assert __main__.main(["env_check", "--nodes", "n1,n2"]) == exit_code
    assert shown in capsys.readouterr().out
    assert __main__.main(["env_check", "--json", "--nodes", "n1,n2"]) == exit_code
    printed = json.loads(capsys.readouterr().out)
    answers = {name: node["exit_code"] for name, node in printed["nodes"].items()}
    answers |= {failure["node"]: None for failure in printed["failures"]}
    assert answers == dict(zip(("n1", "n2"), exit_codes, strict=True))
    assert [difference["subject"] for difference in printed["differences"]] == differing
