"""What Slurm's commands print, and what the launcher makes of it; test_launch_slurm.py runs the commands."""

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import pytest

from suite.env_check.report import Report
from suite.errors import SchedulerError
from suite.external import slurm
from suite.external.slurm import Job
from suite.launch.contract import Asked
from suite.launch.slurm import job as launcher
from suite.launch.slurm import launcher as slurm_place
from suite.launch.slurm.job import judged
from suite.launch.slurm.script import END, JOB, SlurmOptions
from suite.schema.rank_protocol import EndedBy, LaunchResult
from suite.schema.record import Environment, Launch
from tests.conftest import CaseMaker
from tests.fixtures.runs.asked_options import options_with

Prints = Callable[..., None]
PENDING: Final = Job(job_id="7", state="PENDING", reason="Resources", nodes=None, exit_code=None)
OVER: Final = Job(job_id="7", state="COMPLETED", reason=None, nodes="n[1-2]", exit_code=0)
RESULT: Final = LaunchResult(exit_code=0, ended_by=None, started_utc="", wall_time_s=1.0)


@pytest.fixture
def prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Prints:
    """Have a program of Slurm print a text, or refuse with it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder), prepend=":")

    def make(program: str, text: str, *, refuses: bool = False, exit_code: int = 0) -> None:
        end = " >&2\nexit 1" if refuses else f"\nexit {exit_code}"
        (folder / program).write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(text)}{end}\n")
        (folder / program).chmod(0o755)

    return make


@pytest.fixture
def launch(make_case: CaseMaker, tmp_path: Path) -> Launch:
    return Launch(case=make_case(), round=0, argv=("true",), env={}, run_dir=str(tmp_path / "r0"))


@pytest.mark.parametrize(
    ("text", "expected", "is_over"),  # as Slurm 22.05 prints them, shortened
    [
        ("JobState=PENDING Reason=Resources Dependency=(null) ExitCode=0:0 NodeList=", PENDING, False),
        (
            "JobState=RUNNING Reason=None ExitCode=0:0 ReqNodeList=(null) NodeList=n[1-2] NumNodes=2",
            replace(PENDING, state="RUNNING", reason=None, nodes="n[1-2]"),
            False,
        ),
        (
            "JobState=FAILED Reason=NonZeroExitCode ExitCode=143:0 NodeList=n[1-2]",
            replace(OVER, state="FAILED", reason="NonZeroExitCode", exit_code=143),
            True,
        ),
        (
            "JobState=NODE_FAIL Reason=NodeDown ExitCode=0:15 NodeList=n[1-2]",
            replace(OVER, state="NODE_FAIL", reason="NodeDown", exit_code=-15),
            True,
        ),
    ],
)
def test_a_job(text: str, expected: Job, is_over: bool, prints: Prints) -> None:
    prints("scontrol", f"JobId=7 JobName=x {text}")
    assert slurm.job("7") == expected
    assert expected.is_over == is_over


H100: Final = "nvidia_h100_80gb_hbm3"


@pytest.mark.parametrize(
    ("text", "asked", "kind", "expected"),
    [
        (f"1|96|gpu:{H100}:2,gpu:{H100}_4g.40gb:2", None, H100, (1, 2, 96)),
        (f"1|96|gpu:{H100}:2,gpu:{H100}_4g.40gb:2", f"{H100}_4g.40gb", f"{H100}_4g.40gb", (1, 2, 96)),
        ("2|96|gpu:h100:8\n10|64|gpu:a100:4", None, "h100", (2, 8, 96)),
        ("2|96|gpu:h100:8\n10|64|gpu:a100:4", "a100", "a100", (10, 4, 64)),
        ("2|96+|gpu:h100:8(S:0-1)\n10|64|(null)", None, None, (2, 8, 96)),
        ("1|16|gpu:2,shard:8,fpga:4", None, None, (1, 2, 16)),
        ("3|32|(null)", None, None, (3, 0, 32)),
    ],
)
def test_jobs_are_bound_to_one_kind_of_gpus(
    text: str, asked: str | None, kind: str | None, expected: tuple[int, int, int], prints: Prints
) -> None:
    prints("sinfo", text)
    messages: list[str] = []
    options = slurm_place.bound(SlurmOptions(gpu_type=asked), messages.append)
    assert options.gpu_type == kind
    place = slurm_place.resources(options)
    assert (place.nnodes, place.gpus_per_node, place.cpus_per_node) == expected
    assert bool(messages) == (kind is not None and asked is None)


@pytest.mark.parametrize(
    ("text", "asked", "named"),
    [
        ("2|96|gpu:h100:8\n10|64|gpu:a100:8", None, "h100 (8 a node), a100 (8 a node)"),
        ("1|16|gpu:a100:1,gpu:h100:1", None, "a100 (1 a node), h100 (1 a node)"),
        ("2|96|gpu:8\n10|64|gpu:a100:4", None, "GPUs without a kind (8 a node)"),
        ("2|96|gpu:h100:8", "b200", "h100 (8 a node)"),
        ("2|96|(null)", "b200", "no GPUs"),
    ],
)
def test_a_kind_that_is_open_or_absent_is_refused(text: str, asked: str | None, named: str, prints: Prints) -> None:
    prints("sinfo", text)
    with pytest.raises(SchedulerError, match="--gpu-type") as refused:
        slurm_place.resources(SlurmOptions(gpu_type=asked))
    assert named in str(refused.value)


def test_a_node_is_looked_at_once(prints: Prints, environment: Environment, tmp_path: Path) -> None:
    report = Report(host="n1", stack="kitless", device="cpu", needed=frozenset(), checks=(), duration_s=0.5)
    asked = Asked(options=options_with(matrix="smoke"), stack="kitless", device="cpu", say=print, out=tmp_path)
    command = (("python",), {"A": "b"})
    prints("srun", "srun: error: Unable to allocate resources: Invalid qos specification", refuses=True)
    with pytest.raises(SchedulerError, match="qos=NAME"):
        slurm_place.look_at_a_node(SlurmOptions(), asked, command)
    prints("srun", json.dumps({"environment": asdict(environment), "report": report.as_document()}))
    node = slurm_place.look_at_a_node(SlurmOptions(), asked, command)
    assert (node.environment, node.report) == (environment, report)
    prints("srun", "a second look", refuses=True)
    assert slurm_place.look_at_a_node(SlurmOptions(), asked, command) == node


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("Batch job submission failed: Invalid generic resource (gres) specification", "--gpu-type"),
        ("Batch job submission failed: Requested node configuration is not available", "--gpu-type"),
        ("Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)", "qos=NAME"),
        ("Invalid account or account/partition combination specified", "--account"),
        ("User's group not permitted to use this partition", "--partition"),
        ("Requested time limit is invalid (missing or exceeds some limit)", "--time"),
        ("Node count specification invalid", "--partition"),
        ("Invalid feature specification", "constraint="),
        ("Memory specification can not be satisfied", "mem="),
        ("More processors requested than permitted", "--partition"),
        ("Requested reservation is invalid", "reservation="),
        ("sbatch: unrecognized option '--nonsense'", "--sbatch-option"),
        ("a plugin of this site says no", "--sbatch-option"),
    ],
)
def test_a_refusal_names_the_option_to_change(text: str, option: str, prints: Prints) -> None:
    prints("sbatch", f"sbatch: error: {text}", refuses=True)
    with pytest.raises(SchedulerError) as refused:
        slurm.submit(Path("job.sbatch"))
    assert f"sbatch: error: {text}" in str(refused.value)
    assert option in str(refused.value).partition(text)[2]
    assert "same command again" not in str(refused.value)


@pytest.mark.parametrize(
    "text", ["Unable to contact slurm controller (connect failure)", "Socket timed out on send/recv", ""]
)
def test_no_answer_is_no_refusal(text: str, prints: Prints) -> None:
    prints("sbatch", text, refuses=True)
    with pytest.raises(SchedulerError, match="run the same command again"):
        slurm.submit(Path("job.sbatch"))


def test_without_slurm_the_way_on_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SchedulerError, match="sinfo"):
        slurm.partition_nodes(None)


@pytest.mark.parametrize(
    ("state", "dead", "ended_by", "out_of_memory", "again"),
    [
        ("COMPLETED", "n2", None, False, False),
        ("FAILED", "", None, False, False),
        ("FAILED", "n2", "lost", False, True),  # its other nodes notice first, Slurm later
        ("TIMEOUT", "", "timeout", False, False),
        ("DEADLINE", "", "timeout", False, False),
        ("OUT_OF_MEMORY", "", None, True, False),
        ("CANCELLED", "n2", "lost", False, False),
        ("NODE_FAIL", "n2", "lost", False, True),
        ("PREEMPTED", "", "lost", False, True),
        ("BOOT_FAIL", "", "lost", False, True),
    ],
)
def test_slurms_states_as_ours(
    state: str, dead: str, ended_by: EndedBy | None, out_of_memory: bool, again: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm, "dead_nodes", lambda _: tuple(dead.split()))
    result, left_out = judged(RESULT, replace(OVER, state=state, exit_code=1), "7", script_ended=True)
    assert (result.ended_by, result.out_of_memory, result.exit_code) == (ended_by, out_of_memory, 1)
    assert left_out == (tuple(dead.split()) if again else None)
    without_answer = ", and n2 does not answer" if state == "FAILED" else ""
    assert result.why == (f"Slurm job 7: {state}{without_answer}" if ended_by else None)


def test_a_forgotten_job_whose_script_did_not_end_is_lost() -> None:
    result, left_out = judged(RESULT, None, "7", script_ended=False)
    assert (result.ended_by, left_out) == ("lost", ())
    assert judged(RESULT, None, "7", script_ended=True) == (RESULT, None)


@pytest.mark.parametrize(
    ("state", "is_dead"),
    [
        ("IDLE", False),
        ("MIXED+DRAIN", False),
        ("IDLE+POWERING_DOWN", False),  # by power saving, when it has had nothing to do since
        ("DOWN", True),
        ("DOWN+POWERED_DOWN", True),
        ("ALLOCATED+NOT_RESPONDING", True),
        ("IDLE*", True),
        ("FAILING", True),
    ],
)
def test_a_node_is_dead_by_its_state(state: str, is_dead: bool, prints: Prints) -> None:
    prints("scontrol", f"NodeName=n1 CPUTot=2 State=IDLE ThreadsPerCore=1\nNodeName=n2 CPUTot=2 State={state} Weight=1")
    assert slurm.dead_nodes(("n1", "n2")) == (("n2",) if is_dead else ())


def test_what_slurm_does_not_say_of_nodes_decides_nothing(prints: Prints) -> None:
    """A failed job is judged again by the next command; a lost one is submitted again, on any nodes."""
    prints("scontrol", "slurm_load_node error: Access/permission denied", refuses=True)
    on_nodes = replace(RESULT, nodes=("n1", "n2"))
    with pytest.raises(SchedulerError, match="permission denied"):
        judged(on_nodes, replace(OVER, state="FAILED", exit_code=1), "7", script_ended=True)
    assert judged(on_nodes, replace(OVER, state="NODE_FAIL"), "7", script_ended=True)[1] == ()
    assert judged(on_nodes, None, "7", script_ended=False)[1] == ()


def test_a_node_that_slurm_does_not_find_is_not_dead(prints: Prints) -> None:
    prints("scontrol", "Node c1 not found\nNodeName=n2 CPUTot=2 State=DOWN Weight=1", exit_code=1)
    assert slurm.dead_nodes(("c1", "n2")) == ("n2",)
    assert slurm.dead_nodes(()) == ()


def test_a_job_whose_reservation_has_ended_is_cancelled_not_lost(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm keeps the job in the queue, where it could start at any time, next to its replacement."""
    cancelled: list[str] = []
    held = replace(PENDING, state="RESV_DEL_HOLD", reason="Reservation_r1_was_deleted")
    monkeypatch.setattr(slurm, "find", lambda _: None)
    monkeypatch.setattr(slurm, "submit", lambda _: "7")
    monkeypatch.setattr(slurm, "job", lambda _: replace(OVER, state="CANCELLED") if cancelled else held)
    monkeypatch.setattr(slurm, "cancel", cancelled.append)
    with pytest.raises(SchedulerError, match=r"RESV_DEL_HOLD \(Reservation_r1_was_deleted\)"):
        launcher.run(launch, place=launcher.SlurmPlace(options=SlurmOptions(), say=lambda _: None))
    assert cancelled == ["7"]
    assert not launcher.is_submitted(Path(launch.run_dir))


@pytest.mark.parametrize("others_suffice", [True, False])
def test_a_second_attempt_leaves_dead_nodes_out_where_others_suffice(
    launch: Launch, monkeypatch: pytest.MonkeyPatch, *, others_suffice: bool
) -> None:
    """The second job is forgotten before anyone looks, so its script's exit code counts."""
    states, scripts = iter((replace(OVER, state="NODE_FAIL"), None)), list[str]()

    def submit(script: Path) -> str:
        scripts.append(script.read_text())
        (Path(launch.run_dir) / END).write_text(
            '{"exit_code": 3, "told_to_stop": false, "started_unix_s": 60.5, "ended_unix_s": 70.75, "nodes": "n1"}'
        )
        return "7"

    monkeypatch.setattr(slurm, "find", lambda _: None)
    monkeypatch.setattr(slurm, "job", lambda _: next(states))
    monkeypatch.setattr(slurm, "node_names", lambda _: ("n1", "n2"))
    monkeypatch.setattr(slurm, "dead_nodes", lambda _: ("n2",))
    monkeypatch.setattr(slurm, "could_start", lambda _: others_suffice)
    monkeypatch.setattr(slurm, "submit", submit)
    result = launcher.run(launch, place=launcher.SlurmPlace(options=SlurmOptions(), say=lambda _: None))
    own = (3, "1970-01-01T00:01:00+00:00", 10.25)
    assert (result.exit_code, result.started_utc, result.wall_time_s) == own
    assert ["--exclude=n2\n" in script for script in scripts] == [False, others_suffice]


@pytest.mark.parametrize(("name", "next_step"), [(JOB, "submitted anew"), (END, "Slurm is asked")])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "document: Input should be an object"),
        ('{"job_id": 7, "attempt": 1, "exit_code": "x"}', "(job_id|exit_code): Input should be a valid"),
    ],
)
def test_a_damaged_note_of_a_job_is_named(launch: Launch, name: str, next_step: str, text: str, why: str) -> None:
    read = launcher.submitted if name == JOB else launcher.ended
    path = Path(launch.run_dir) / name
    assert read(path.parents[1]) is None
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SchedulerError, match=rf"{re.escape(str(path))} is not readable: {why}.*Delete it.*{next_step}"):
        read(path.parents[1])


def test_the_launcher_reads_the_note_of_a_job_before_it_asks_slurm(
    launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    path = Path(launch.run_dir) / JOB
    path.parent.mkdir(parents=True)
    path.touch()
    with pytest.raises(SchedulerError, match=r"job\.json is not readable"):
        launcher.run(launch, place=launcher.SlurmPlace(options=SlurmOptions(), say=print))
