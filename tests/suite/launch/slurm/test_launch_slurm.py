"""The Slurm launcher on a real Slurm; ranks that are a few lines of Python stand for training."""

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from suite.errors import EnvironmentNotFit, SchedulerError
from suite.external import slurm
from suite.launch.slurm import run as launcher
from suite.launch.slurm.run import SlurmPlace
from suite.launch.slurm.script import END, JOB, NodeCheck, SlurmOptions
from suite.records.collect import collect
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import Case, Environment, Launch
from tests.conftest import CaseMaker
from tests.fixtures.machines.slurm_cluster import SlurmCluster
from tests.fixtures.runs.real_runs import MARK, marked_processes, wait_until

# Writes what a rank writes, for as long as the file `go_on` is there; with `write_on` it writes all the time.
RANK: Final = """
import faulthandler, json, signal, sys, time
from pathlib import Path
faulthandler.register(signal.SIGUSR1)
with open("rank-0.jsonl", "a") as log:
    for iteration in range(3):
        print(json.dumps({"event": "iteration", "iteration": iteration, "samples": {}}), file=log, flush=True)
    while Path("go_on").exists():
        time.sleep(0.1)
        if Path("write_on").exists():
            print(json.dumps({"event": "phase"}), file=log, flush=True)
sys.exit(int(sys.argv[1]))
"""
Said = list[str]
Run = Callable[..., LaunchResult]


@pytest.fixture
def place(slurm: SlurmCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmPlace:
    """The cluster as this process sees it, through Slurm's commands on its login machine."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(slurm.programs(tmp_path / "bin")), prepend=":")
    monkeypatch.setenv("SLURM_CONF", slurm.environ["SLURM_CONF"])
    said: Said = []
    return SlurmPlace(options=SlurmOptions(time="5"), say=said.append)


@pytest.fixture
def launch(make_case: CaseMaker, tmp_path: Path) -> Launch:
    case: Case = make_case(nproc_per_node=1, num_envs_global=32)
    run_dir = tmp_path / "r0"
    run_dir.mkdir()
    argv = (sys.executable, "-c", RANK, "0")
    return Launch(case=case, round=0, argv=argv, env={"GREETING": "it's me"}, run_dir=str(run_dir))


def test_a_job_that_ended_while_nobody_looked(place: SlurmPlace, launch: Launch, tmp_path: Path) -> None:
    """Slurm has forgotten it; its script has noted how it ended."""
    launch = replace(launch, argv=(*launch.argv[:-1], "3"))
    assert launcher.run(launch, place=place).exit_code == 3
    (tmp_path / "r0" / JOB).write_text('{"job_id": "99999", "attempt": 1}')
    assert slurm.job("99999") is None
    result = launcher.run(launch, place=place)
    assert (result.exit_code, result.ended_by, result.nodes) == (3, None, ("n1",))


def test_a_job_that_was_ended_while_nobody_looked_is_lost(
    place: SlurmPlace, launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A preemption ends a job like this: Slurm has forgotten why, and the ranks did not finish."""
    monkeypatch.setattr(launcher, "ATTEMPTS", 1)
    (tmp_path / "r0" / "go_on").touch()
    job_id = slurm.submit(launcher.write_script(launch, place))
    wait_until((tmp_path / "r0" / "rank-0.jsonl").exists, timeout_s=20, what="it runs")
    slurm.cancel(job_id)
    wait_until((tmp_path / "r0" / END).exists, timeout_s=20, what="its script notes the end")
    (tmp_path / "r0" / JOB).write_text('{"job_id": "99999", "attempt": 1}')
    result = launcher.run(launch, place=place)
    assert (result.exit_code, result.ended_by, result.nodes) == (1, "lost", ("n1",))
    assert "99999" in (result.why or "")
    assert json.loads((tmp_path / "r0" / END).read_text())["exit_code"] == 143


def test_a_script_submitted_by_hand_is_followed(place: SlurmPlace, launch: Launch, tmp_path: Path) -> None:
    script = launcher.write_script(launch, place)
    assert not launcher.is_submitted(tmp_path / "r0")
    job_id = slurm.submit(script)
    wait_until(lambda: launcher.is_submitted(tmp_path / "r0"), timeout_s=10, what="the script says who it is")
    assert launcher.run(launch, place=place).exit_code == 0
    assert json.loads((tmp_path / "r0" / JOB).read_text()) == {"job_id": job_id, "attempt": 1}


@pytest.mark.parametrize(
    ("compare", "said"),
    [
        (("sh", "-c", "echo n2: unlike; false"), "nodes that differ, and did not train:\nn2: unlike\nKeep one"),
        (("/nowhere/python",), "did not train: what compares its nodes could not run. .*No such file"),
    ],
)
def test_nodes_that_differ_and_nodes_that_nobody_could_compare(
    place: SlurmPlace, launch: Launch, compare: tuple[str, ...], said: str
) -> None:
    nodes = NodeCheck(argv=("hostname",), env={}, compare=compare, is_binding=True)
    two = replace(launch, case=replace(launch.case, nnodes=2))
    with pytest.raises(EnvironmentNotFit, match=f"(?s){said}.*--ignore-env-check"):
        launcher.run(two, place=replace(place, node_check=nodes))
    assert not launcher.is_submitted(Path(launch.run_dir))


def test_a_script_submitted_by_hand_again_is_the_one_followed(
    place: SlurmPlace, launch: Launch, tmp_path: Path
) -> None:
    """A user excludes the node that refused the first job; the files of the first job no longer count."""
    folder = tmp_path / "r0" / "slurm"
    nodes = NodeCheck(argv=("hostname",), env={}, compare=("cat",), is_binding=False)
    two = replace(launch, case=replace(launch.case, nnodes=2))
    script = launcher.write_script(two, replace(place, node_check=nodes))
    jobs = []
    for _ in range(2):
        jobs.append(slurm.submit(script))
        wait_until(lambda: slurm.find(launcher.job_name(tmp_path / "r0")) is None, timeout_s=30, what="it is over")
    assert json.loads((tmp_path / "r0" / JOB).read_text()) == {"job_id": jobs[1], "attempt": 1}
    assert (folder / "differences.txt").read_text() == "n1\nn2\n"


@pytest.mark.parametrize("ending", ["hung", "timeout", "interrupted"])
def test_a_run_that_has_to_be_ended(
    place: SlurmPlace, launch: Launch, environment: Environment, tmp_path: Path, ending: str
) -> None:
    """The ranks print their stacks before they end."""
    (tmp_path / "r0" / "go_on").touch()
    case = replace(
        launch.case,
        hang_timeout_s=5.0 if ending == "hung" else 300.0,
        timeout_s=3.0 if ending == "timeout" else 300.0,
    )
    launch = replace(launch, case=case)
    stop = threading.Event()
    if ending == "interrupted":
        threading.Timer(3.0, stop.set).start()
    result = launcher.run(launch, place=place, stop=stop)
    assert result.ended_by == ending
    assert slurm.find(launcher.job_name(tmp_path / "r0")) is None
    if ending == "interrupted":
        assert not launcher.is_submitted(tmp_path / "r0"), "the next command would take it for cancelled by others"
        return
    assert "most recent call first" in (tmp_path / "r0" / "logs" / "torchrun.log").read_text()
    record = collect(tmp_path / "r0", launch.case, 0, result, environment)
    assert record.outcome == ending


def test_what_slurm_does_not_take(place: SlurmPlace, launch: Launch, tmp_path: Path) -> None:
    with pytest.raises(SchedulerError, match=r"sbatch: .*invalid partition specified: moon"):
        launcher.run(launch, place=replace(place, options=SlurmOptions(partition="moon")))
    assert not launcher.is_submitted(tmp_path / "r0")
    with pytest.raises(SchedulerError, match=r"sinfo: |no nodes in partition moon"):
        slurm.partition_nodes("moon")


def test_a_job_that_waits_in_vain_is_cancelled(place: SlurmPlace, launch: Launch, tmp_path: Path) -> None:
    """The partition allows half an hour."""
    with pytest.raises(SchedulerError, match=r"PartitionTimeLimit.*--time"):
        launcher.run(launch, place=replace(place, options=SlurmOptions(time="60")))
    assert not launcher.is_submitted(tmp_path / "r0")
    assert slurm.find(launcher.job_name(tmp_path / "r0")) is None


def test_a_job_that_nobody_wrote_down_is_not_left_beside_another(place: SlurmPlace, launch: Launch) -> None:
    go_on = Path(launch.run_dir) / "go_on"
    go_on.touch()
    first = slurm.submit(launcher.write_script(launch, place))
    (Path(launch.run_dir) / JOB).unlink(missing_ok=True)
    assert slurm.find(launcher.job_name(Path(launch.run_dir))) == first
    go_on.unlink()
    assert launcher.run(launch, place=place).exit_code == 0


def test_inside_an_allocation_jobs_are_of_their_own(
    place: SlurmPlace, launch: Launch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment holds variables that salloc left, of a job that has ended."""
    for name, value in {"SLURM_JOB_ID": "99999", "SLURM_NNODES": "3", "SLURM_NTASKS": "3"}.items():
        monkeypatch.setenv(name, value)
    assert launcher.run(launch, place=place).exit_code == 0
    step = slurm.run_step(("hostname",), timeout_s=20)
    assert step.stdout.split() == ["n1"], step.stderr


@dataclass(frozen=True, kw_only=True)
class Followed:
    """A round whose ranks go on until they are let go, followed in a thread of the test."""

    launch: Launch
    said: Said
    thread: threading.Thread
    ended: list[LaunchResult]

    def await_said(self, text: str, *, within_s: float = 20.0) -> None:
        wait_until(lambda: any(text in line for line in self.said), timeout_s=within_s, what=f"{text}: {self.said}")

    def result(self, *, within_s: float = 30.0) -> LaunchResult:
        """Let the ranks go; their end is that of the round."""
        (Path(self.launch.run_dir) / "go_on").unlink(missing_ok=True)
        self.thread.join(within_s)
        assert self.ended, f"not within {within_s:g} s: {self.said}"
        return self.ended[0]


Follow = Callable[..., Followed]


@pytest.fixture
def follow(place: SlurmPlace, launch: Launch, monkeypatch: pytest.MonkeyPatch) -> Iterator[Follow]:
    monkeypatch.setattr(launcher, "LAST_POLL_S", 1.0)
    stop = threading.Event()
    started: list[Followed] = []

    def start(*more: str, nnodes: int = 1, hang_timeout_s: float = 300.0) -> Followed:
        run_dir = Path(launch.run_dir)
        (run_dir / "go_on").touch()
        case = replace(launch.case, nnodes=nnodes, hang_timeout_s=hang_timeout_s)
        endless = replace(launch, case=case, env={**launch.env, MARK: launch.run_dir})
        said: Said = []
        asked = replace(place, options=replace(place.options, sbatch_option=more), say=said.append)
        ended: list[LaunchResult] = []
        thread = threading.Thread(target=lambda: ended.append(launcher.run(endless, place=asked, stop=stop)))
        thread.start()
        started.append(Followed(launch=endless, said=said, thread=thread, ended=ended))
        return started[-1]

    yield start
    stop.set()
    for one in started:
        one.thread.join(60)


def test_a_drained_node_finishes_its_round_and_gets_no_other(
    slurm: SlurmCluster, follow: Follow, tmp_path: Path
) -> None:
    followed = follow()
    followed.await_said("RUNNING on n1")
    with slurm.drained("n1"):
        assert slurm.ask("sinfo", "--noheader", "--nodes=n1", "--format=%T").strip() == "draining"
        result = followed.result()
        assert (result.exit_code, result.ended_by, result.why, result.nodes) == (0, None, None, ("n1",))
        assert marked_processes(tmp_path / "r0") == []
        (tmp_path / "r0").rename(tmp_path / "first")
        (tmp_path / "r0").mkdir()
        other = follow()
        other.await_said("RUNNING on n2")
        assert other.result().exit_code == 0


def test_a_round_that_needs_a_drained_node_waits_for_it(slurm: SlurmCluster, follow: Follow) -> None:
    """Slurm says why, and how long a queue may be nobody knows: it is not ended."""
    with slurm.drained("n1"):
        followed = follow("nodelist=n1")
        followed.await_said("PENDING (")
        assert not followed.ended
    followed.await_said("RUNNING on n1")
    assert followed.result().exit_code == 0


def test_a_job_that_slurm_suspends_is_not_taken_for_hung(slurm: SlurmCluster, follow: Follow, tmp_path: Path) -> None:
    (tmp_path / "r0" / "write_on").touch()
    hang_timeout_s = 8.0  # the rank starts within it
    followed = follow(hang_timeout_s=hang_timeout_s)
    followed.await_said("RUNNING on n1")
    wait_until((tmp_path / "r0" / "rank-0.jsonl").exists, timeout_s=20, what="the rank runs")
    job_id = (Path(followed.launch.run_dir) / JOB).read_text().split('"')[3]
    slurm.ask("scontrol", "suspend", job_id)
    followed.await_said("SUSPENDED")
    time.sleep(hang_timeout_s + 1)
    slurm.ask("scontrol", "resume", job_id)
    wait_until(lambda: "RUNNING" in followed.said[-1], timeout_s=20, what="it goes on")
    result = followed.result()
    assert (result.exit_code, result.ended_by) == (0, None)


def test_a_node_that_dies_costs_an_attempt_and_not_the_round(
    slurm: SlurmCluster, follow: Follow, tmp_path: Path
) -> None:
    """An administrator says that it is down; else Slurm waits for it for a while."""
    followed = follow(nnodes=2)
    followed.await_said("RUNNING on n[1-2]")
    wait_until((tmp_path / "r0" / "rank-0.jsonl").exists, timeout_s=20, what="ranks run")
    slurm.kill_node("n2")
    slurm.ask("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=no power")
    followed.await_said("It is submitted once more", within_s=60.0)
    result = followed.result(within_s=60.0)  # nothing keeps the ranks of the second attempt, so it may end unseen
    assert any("NODE_FAIL" in line for line in followed.said), followed.said
    assert (result.exit_code, result.ended_by, result.nodes) == (0, None, ("n1", "n3"))
    assert (tmp_path / "r0.lost-1" / "rank-0.jsonl").exists()
    assert json.loads((tmp_path / "r0" / JOB).read_text())["attempt"] == 2


@pytest.mark.slow
def test_a_node_whose_link_is_cut_loses_the_round_that_goes_on_elsewhere(
    slurm: SlurmCluster, follow: Follow, tmp_path: Path
) -> None:
    """The processes on the cut node end once it is connected again."""
    followed = follow(nnodes=2)
    followed.await_said("RUNNING on n[1-2]")
    wait_until(lambda: len(marked_processes(tmp_path / "r0")) > 1, timeout_s=20, what="ranks run")
    slurm.link("n2", "down")
    try:
        followed.await_said("It is submitted once more", within_s=90.0)
        result = followed.result(within_s=60.0)
    finally:
        slurm.link("n2", "up")
    assert any("NODE_FAIL" in line for line in followed.said), followed.said
    assert (result.exit_code, result.ended_by) == (0, None)
    assert (tmp_path / "r0.lost-1").exists()
    wait_until(lambda: marked_processes(tmp_path / "r0") == [], timeout_s=300, what="nothing is left on n2")


def test_a_job_runs_to_its_end_and_the_launcher_follows(place: SlurmPlace, launch: Launch) -> None:
    done: list[int] = []
    result = launcher.run(launch, place=place, on_progress=done.append)
    assert (result.exit_code, result.ended_by, result.why) == (0, None, None)
    assert result.wall_time_s > 0
    assert done[-1:] in ([], [3])  # a job as short as this may never be seen running
    assert json.loads((Path(launch.run_dir) / END).read_text())["exit_code"] == 0
