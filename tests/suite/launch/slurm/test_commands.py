"""What Slurm's commands print, as values; the commands themselves run in test_launch_slurm.py."""

import re
import shlex
from pathlib import Path
from typing import Final

import pytest

from suite.errors import SchedulerError
from suite.external import slurm
from suite.external.slurm import Job, NodeGroup, parse_dead_nodes, parse_job, parse_node_groups
from suite.launch.slurm import job as launcher
from suite.launch.slurm import launcher as slurm_place
from suite.launch.slurm.job import judged
from suite.launch.slurm.script import END, JOB, SlurmOptions
from suite.schema.rank_protocol import EndedBy, LaunchResult
from suite.schema.record import Launch
from tests.conftest import CaseMaker

# As Slurm 22.05 prints them, shortened.
PENDING = "JobId=7 JobName=x JobState=PENDING Reason=Resources Dependency=(null) ExitCode=0:0 NodeList=\n"
RUNNING = "JobId=7 JobName=x JobState=RUNNING Reason=None ExitCode=0:0 ReqNodeList=(null) NodeList=n[1-2] NumNodes=2\n"
FAILED = "JobId=7 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=143:0 NodeList=n[1-2]\n"
RESV_DEL_HOLD = "JobId=7 JobName=x JobState=RESV_DEL_HOLD Reason=Reservation_r1_was_deleted ExitCode=0:0 NodeList=\n"
COMPLETED = "JobId=7 JobName=x JobState=COMPLETED Reason=None ExitCode=0:0 NodeList=n[1-2]\n"
CANCELLED = "JobId=7 JobName=x JobState=CANCELLED Reason=None ExitCode=0:0 NodeList=\n"
NODE_FAIL = "JobId=7 JobName=x JobState=NODE_FAIL Reason=NodeDown ExitCode=0:15 NodeList=n[1-2]\n"


@pytest.mark.parametrize(
    ("text", "expected", "is_over"),
    [
        (PENDING, Job(job_id="7", state="PENDING", reason="Resources", nodes=None, exit_code=None), False),
        (RUNNING, Job(job_id="7", state="RUNNING", reason=None, nodes="n[1-2]", exit_code=None), False),
        (FAILED, Job(job_id="7", state="FAILED", reason="NonZeroExitCode", nodes="n[1-2]", exit_code=143), True),
        (NODE_FAIL, Job(job_id="7", state="NODE_FAIL", reason="NodeDown", nodes="n[1-2]", exit_code=-15), True),
    ],
)
def test_a_job(text: str, expected: Job, is_over: bool) -> None:
    assert parse_job("7", text) == expected
    assert expected.is_over == is_over


def test_nodes_of_a_partition() -> None:
    text = "4|64+|gpu:h200:8(S:0-1)\n2|32|(null)\n1|16|gpu:2,shard:8\n1|16|gpu:a100:1,gpu:h100:1,fpga:4\n"
    assert parse_node_groups(text) == (
        NodeGroup(nnodes=4, num_cpus=64, num_gpus=8),
        NodeGroup(nnodes=2, num_cpus=32, num_gpus=0),
        NodeGroup(nnodes=1, num_cpus=16, num_gpus=2),
        NodeGroup(nnodes=1, num_cpus=16, num_gpus=2),
    )


H100: Final = "nvidia_h100_80gb_hbm3"


@pytest.mark.parametrize(
    ("text", "asked", "kind", "expected"),
    [
        (f"1|96|gpu:{H100}:2,gpu:{H100}_4g.40gb:2\n", None, H100, (1, 2, 96)),
        (f"1|96|gpu:{H100}:2,gpu:{H100}_4g.40gb:2\n", f"{H100}_4g.40gb", f"{H100}_4g.40gb", (1, 2, 96)),
        ("2|96|gpu:h100:8\n10|64|gpu:a100:4\n", None, "h100", (2, 8, 96)),
        ("2|96|gpu:h100:8\n10|64|gpu:a100:4\n", "a100", "a100", (10, 4, 64)),
        ("2|96|gpu:h100:8(S:0-1)\n10|64|(null)\n", None, None, (2, 8, 96)),
        ("3|32|gpu:4\n", None, None, (3, 4, 32)),
        ("3|32|(null)\n", None, None, (3, 0, 32)),
    ],
)
def test_jobs_are_bound_to_one_kind_of_gpus(
    text: str, asked: str | None, kind: str | None, expected: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "partition_nodes", lambda _: parse_node_groups(text))
    said: list[str] = []
    options = slurm_place.bound(SlurmOptions(gpu_type=asked), said.append)
    assert options.gpu_type == kind
    found = slurm_place.resources(options)
    assert (found.nnodes, found.gpus_per_node, found.cpus_per_node) == expected
    assert bool(said) == (kind is not None and asked is None)
    assert all(other in said[0] for other in parse_node_groups(text)[-1].gpus if said)


@pytest.mark.parametrize(
    ("text", "asked", "named"),
    [
        ("2|96|gpu:h100:8\n10|64|gpu:a100:8\n", None, "h100 (8 a node), a100 (8 a node)"),
        ("1|16|gpu:a100:1,gpu:h100:1\n", None, "a100 (1 a node), h100 (1 a node)"),
        ("2|96|gpu:8\n10|64|gpu:a100:4\n", None, "GPUs without a kind (8 a node)"),
        ("2|96|gpu:h100:8\n", "b200", "h100 (8 a node)"),
        ("2|96|(null)\n", "b200", "no GPUs"),
    ],
)
def test_a_kind_that_is_open_or_absent_is_refused(text: str, asked: str | None, named: str) -> None:
    with pytest.raises(SchedulerError, match="--gpu-type") as refused:
        slurm_place.kind_of(parse_node_groups(text), asked)
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("said", "option"),
    [
        ("Batch job submission failed: Invalid generic resource (gres) specification", "--gpu-type"),
        ("Invalid gres specification", "--gres"),
        ("Gres format wrong", "--gpu-type"),
        ("Batch job submission failed: Requested node configuration is not available", "--gpu-type"),
        ("Batch job submission failed: Invalid qos specification", "qos=NAME"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", "qos=NAME"),
        ("Invalid account or account/partition combination specified", "--account"),
        ("invalid partition specified: gpux", "--partition"),
        ("User's group not permitted to use this partition", "--partition"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "--time"),
        ("Node count specification invalid", "--partition"),
        ("Invalid node name specified", "nodelist"),
        ("Invalid feature specification", "constraint="),
        ("Memory specification can not be satisfied", "mem="),
        ("More processors requested than permitted", "--partition"),
        ("Requested reservation is invalid", "reservation="),
        ("sbatch: unrecognized option '--nonsense'", "--sbatch-option"),
        ("a plugin of this site says no", "--sbatch-option"),
    ],
)
def test_a_refusal_names_the_option_to_change(
    said: str, option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text(f"#!/bin/sh\necho {shlex.quote(f'sbatch: error: {said}')} >&2\nexit 1\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(SchedulerError) as refused:
        slurm.submit(tmp_path / "job.sbatch")
    assert f"sbatch: error: {said}" in str(refused.value)
    assert option in str(refused.value).partition(said)[2]
    assert "same command again" not in str(refused.value)


@pytest.mark.parametrize(
    "said", ["Unable to contact slurm controller (connect failure)", "Socket timed out on send/recv", ""]
)
def test_no_answer_is_no_refusal(said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sbatch").write_text(f"#!/bin/sh\necho {shlex.quote(said)} >&2\nexit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(SchedulerError, match="run the same command again"):
        slurm.submit(tmp_path / "job.sbatch")


def test_without_slurm_the_way_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SchedulerError, match="sinfo"):
        slurm.partition_nodes(None)


@pytest.mark.parametrize(
    ("state", "ended_by", "out_of_memory", "again"),
    [
        ("COMPLETED", None, False, False),
        ("FAILED", None, False, False),
        ("TIMEOUT", "timeout", False, False),
        ("DEADLINE", "timeout", False, False),
        ("OUT_OF_MEMORY", None, True, False),
        ("CANCELLED", "lost", False, False),
        ("NODE_FAIL", "lost", False, True),
        ("PREEMPTED", "lost", False, True),
        ("BOOT_FAIL", "lost", False, True),
    ],
)
def test_slurms_states_as_ours(state: str, ended_by: EndedBy | None, out_of_memory: bool, again: bool) -> None:
    found = Job(job_id="7", state=state, reason=None, nodes=None, exit_code=1)
    result = LaunchResult(exit_code=0, ended_by=None, started_utc="", wall_time_s=1.0)
    got, got_again = judged(result, found, "7", script_ended=True)
    assert (got.ended_by, got.out_of_memory, got_again) == (ended_by, out_of_memory, again)
    assert got.why == (f"Slurm job 7: {state}" if ended_by else None)
    assert got.exit_code == 1


@pytest.mark.parametrize(
    ("state", "is_dead"),
    [
        ("IDLE", False),
        ("MIXED+DRAIN", False),
        ("IDLE+POWERING_DOWN", False),  # by power saving, when it has had nothing to do since
        ("IDLE+CLOUD+POWERED_DOWN", False),
        ("DOWN", True),
        ("DOWN*+CLOUD", True),
        ("DOWN+POWERED_DOWN", True),
        ("ALLOCATED+NOT_RESPONDING", True),
        ("IDLE*", True),
        ("FAILING", True),
    ],
)
def test_a_node_is_dead_by_its_state(state: str, is_dead: bool) -> None:
    text = (
        f"NodeName=n1 Arch=x86_64 CPUTot=2 State=IDLE ThreadsPerCore=1\nNodeName=n2 CPUTot=2 State={state} Weight=1\n"
    )
    assert parse_dead_nodes(text) == (("n2",) if is_dead else ())


@pytest.mark.parametrize(("nodes", "again"), [((), False), (("n2",), True)])
def test_a_failure_with_a_dead_node_is_the_nodes(
    nodes: tuple[str, ...], again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others notice first, and the job fails before Slurm misses the node."""
    monkeypatch.setattr(slurm, "dead_nodes", lambda _: nodes)
    result = LaunchResult(exit_code=0, ended_by=None, started_utc="", wall_time_s=1.0)
    got, got_again = judged(result, parse_job("7", FAILED), "7", script_ended=True)
    assert got_again == again
    if again:
        assert (got.ended_by, got.why) == (
            "lost", "Slurm job 7: FAILED (NonZeroExitCode), and n2 does not answer"
        )  # fmt: skip


def test_a_job_whose_reservation_has_ended_is_cancelled_not_lost(
    make_case: CaseMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm keeps the job in the queue, where it could start at any time, next to its replacement."""
    cancelled: list[str] = []
    monkeypatch.setattr(slurm, "find", lambda _: None)
    monkeypatch.setattr(slurm, "submit", lambda _: "7")
    monkeypatch.setattr(slurm, "job", lambda _: parse_job("7", CANCELLED if cancelled else RESV_DEL_HOLD))
    monkeypatch.setattr(slurm, "cancel", cancelled.append)
    launch = Launch(case=make_case(), round=0, argv=("true",), env={}, run_dir=str(tmp_path))
    with pytest.raises(SchedulerError, match=r"RESV_DEL_HOLD \(Reservation_r1_was_deleted\)"):
        launcher.run(launch, place=launcher.SlurmPlace(options=SlurmOptions(), say=lambda _: None))
    assert cancelled == ["7"]
    assert not launcher.is_submitted(tmp_path)


@pytest.mark.parametrize("others_suffice", [True, False])
def test_a_second_attempt_leaves_dead_nodes_out_where_others_suffice(
    make_case: CaseMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, others_suffice: bool
) -> None:
    states, scripts = iter((NODE_FAIL, COMPLETED)), list[str]()

    def submit(script: Path) -> str:
        scripts.append(script.read_text())
        (tmp_path / "r0" / END).write_text(
            '{"exit_code": 0, "told_to_stop": false, "started_unix_s": 60.5, "ended_unix_s": 70.75, "nodes": "n1"}'
        )
        return "7"

    monkeypatch.setattr(slurm, "find", lambda _: None)
    monkeypatch.setattr(slurm, "job", lambda _: parse_job("7", next(states)))
    monkeypatch.setattr(slurm, "names_of", lambda _: ("n1", "n2"))
    monkeypatch.setattr(slurm, "dead_nodes", lambda _: ("n2",))
    monkeypatch.setattr(slurm, "could_start", lambda _: others_suffice)
    monkeypatch.setattr(slurm, "submit", submit)
    launch = Launch(case=make_case(), round=0, argv=("true",), env={}, run_dir=str(tmp_path / "r0"))
    result = launcher.run(launch, place=launcher.SlurmPlace(options=SlurmOptions(), say=lambda _: None))
    assert (result.started_utc, result.wall_time_s) == ("1970-01-01T00:01:00+00:00", 10.25)  # the script's own
    assert ["--exclude=n2\n" in script for script in scripts] == [False, others_suffice]


def test_a_forgotten_job_whose_script_did_not_end_is_lost() -> None:
    result = LaunchResult(exit_code=0, ended_by=None, started_utc="", wall_time_s=1.0)
    got, again = judged(result, None, "7", script_ended=False)
    assert (got.ended_by, again) == ("lost", True)
    assert judged(result, None, "7", script_ended=True) == (result, False)


@pytest.mark.parametrize(("name", "next_step"), [(JOB, "submitted anew"), (END, "Slurm is asked")])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "document: Input should be an object"),
        ('{"job_id": "7", "att', "document: Invalid JSON"),
        ("{}", "(job_id|exit_code): Field required"),
        ('{"job_id": 7, "attempt": 1, "exit_code": "x"}', "(job_id|exit_code): Input should be a valid"),
    ],
)
def test_a_damaged_note_of_a_job_is_named(tmp_path: Path, name: str, next_step: str, text: str, why: str) -> None:
    read = launcher.submitted if name == JOB else launcher.ended
    assert read(tmp_path) is None
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SchedulerError, match=rf"{re.escape(str(path))} is not readable: {why}.*Delete it.*{next_step}"):
        read(tmp_path)


def test_the_launcher_reads_the_notes_before_it_asks_slurm(tmp_path: Path, make_case: CaseMaker) -> None:
    path = tmp_path / JOB
    path.parent.mkdir()
    path.write_text("[]", encoding="utf-8")
    launch = Launch(case=make_case(), round=0, argv=(), env={}, run_dir=str(tmp_path))
    with pytest.raises(SchedulerError, match=r"job\.json is not readable"):
        launcher.run(launch, place=launcher.SlurmPlace(options=SlurmOptions(), say=print))
