"""The launcher ``slurm`` on a real Slurm; a few lines of Python stand for training."""

import functools
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import EnvironmentNotFit, SchedulerError
from suite.external import slurm
from suite.launch.contract import RunControl
from suite.launch.slurm import job
from suite.launch.slurm.job import SlurmPlace
from suite.launch.slurm.script import END, JOB, SCRIPT, NodeCheck, SlurmOptions
from tests.fixtures.machines.slurm_cluster import SlurmCluster
from tests.fixtures.runs.real_runs import marked_processes, wait_until
from tests.suite.launch.contract import NodesContract, Place, Round, WhenStarted

SAVED_S = 8.0  # until a controller has stored that a job runs: one that is killed before has forgotten it


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def cluster(
    slurm: SlurmCluster, messages: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., SlurmPlace]:
    """The cluster as this process sees it, through Slurm's commands on its login machine."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(slurm.commands(tmp_path / "bin")), prepend=":")
    monkeypatch.setenv("SLURM_CONF", slurm.environ["SLURM_CONF"])
    monkeypatch.setattr(job, "LAST_POLL_S", 1.0)
    return lambda time="5", **options: SlurmPlace(options=SlurmOptions(time=time, **options), say=messages.append)


@pytest.fixture
def place(slurm: SlurmCluster, cluster: Callable[..., SlurmPlace]) -> Place:
    def lose_node() -> None:
        """An administrator says that it is down; else Slurm waits for it for a while.

        It stays down, though Slurm may still read what the node sent before (ReturnToService=1).
        """
        slurm.kill_node("n2")
        slurm.ask("scontrol", "update", "NodeName=n2", "State=DOWN", "Reason=no power")

    return replace(place_of(cluster()), lose_node=lose_node)


def place_of(place: SlurmPlace, *, nnodes: int = 2) -> Place:
    return Place(run=functools.partial(job.run, place=place), nnodes=nnodes, patience_s=5.0)


def on_one_node(stand_in: Round, place: SlurmPlace) -> Round:
    case = replace(stand_in.launch.case, nnodes=1, num_envs_global=32)
    return Round(place=place_of(place, nnodes=1), launch=replace(stand_in.launch, case=case))


def noted_job(run_dir: Path) -> dict[str, object]:
    return dict(json.loads((run_dir / JOB).read_text()))


def await_message(messages: list[str], text: str, *, within_s: float = 20.0) -> None:
    wait_until(lambda: any(text in line for line in messages), timeout_s=within_s, what=f"{text}: {messages}")


class TestSlurm(NodesContract):
    """A job outlives the command that submitted it, and Slurm replaces a node that dies."""

    @pytest.fixture(autouse=True)
    def _hear(self, messages: list[str]) -> None:
        self.messages = messages

    @pytest.mark.usefixtures("ctrl_c")
    def test_ctrl_c_leaves_nothing(self, stand_in: Round) -> None:
        """The job goes on, and the same command follows it."""
        with pytest.raises(KeyboardInterrupt):
            stand_in.run(RunControl(stop=WhenStarted(stand_in.has_started, KeyboardInterrupt)))
        assert "goes on without labscale" in self.messages[-1]
        self.follow(stand_in)

    @pytest.mark.filterwarnings("ignore:.*use of fork.. may lead to deadlocks:DeprecationWarning")
    def test_killed_labscale_leaves_nothing(self, stand_in: Round) -> None:
        self.kill(stand_in)
        self.follow(stand_in)

    @staticmethod
    def follow(stand_in: Round) -> None:
        noted = noted_job(stand_in.run_dir)
        assert marked_processes(stand_in.run_dir) != []
        stand_in.end_with(0, 0)
        assert stand_in.run().exit_code == 0
        assert noted_job(stand_in.run_dir) == noted

    def test_one_node_that_fails_ends_the_other(self, stand_in: Round) -> None:
        """The exit code is that of srun, which ends the others by a signal."""
        stand_in.write("exit-1", "3")
        result = stand_in.run()
        assert (result.exit_code != 0, result.ended_by) == (True, None)
        assert stand_in.processes() == []

    def test_a_lost_node_ends_the_other_and_is_named(self, stand_in: Round) -> None:
        """It costs an attempt and not the round."""
        result_within = stand_in.begin()
        stand_in.place.lose_node()
        first = stand_in.run_dir.with_name("r0.lost-1")
        wait_until(first.exists, timeout_s=60, what="it is submitted once more")
        stand_in.end_with(0, 0)
        result = result_within(60.0)
        assert (result.exit_code, result.ended_by, result.nodes) == (0, None, ("n1", "n3"))
        assert (first / "rank-0.jsonl").exists()
        assert noted_job(stand_in.run_dir)["attempt"] == 2
        assert "\n#SBATCH --exclude=n2\n" in (stand_in.run_dir / SCRIPT).read_text()

    @pytest.mark.slow
    def test_a_controller_restarts_and_a_job_that_is_cancelled_is_not_repeated(
        self, slurm: SlurmCluster, stand_in: Round, messages: list[str]
    ) -> None:
        result_within = stand_in.begin()
        time.sleep(SAVED_S)
        slurm.kill_controller()
        await_message(messages, "Slurm does not answer, and is asked again", within_s=30.0)
        slurm.start_controller()
        wait_until(lambda: "RUNNING" in messages[-1], timeout_s=60, what="it is back")
        job_id = noted_job(stand_in.run_dir)["job_id"]
        slurm.ask("scancel", str(job_id))
        result = result_within(30.0)
        assert result.ended_by == "lost"
        assert (result.why or "").startswith(f"Slurm job {job_id}: CANCELLED")
        assert noted_job(stand_in.run_dir)["attempt"] == 1

    @pytest.mark.slow
    def test_a_node_whose_link_is_cut_loses_the_round_that_goes_on_elsewhere(
        self, slurm: SlurmCluster, stand_in: Round, messages: list[str]
    ) -> None:
        """The processes on the cut node end once it is connected again."""
        result_within = stand_in.begin()
        slurm.link("n2", "down")
        try:
            await_message(messages, "It is submitted once more", within_s=90.0)
            stand_in.end_with(0, 0)
            result = result_within(60.0)
        finally:
            slurm.link("n2", "up")
        assert any("NODE_FAIL" in line for line in messages), messages
        assert (result.exit_code, result.ended_by) == (0, None)
        wait_until(lambda: marked_processes(stand_in.run_dir) == [], timeout_s=300, what="nothing is left on n2")

    @pytest.mark.parametrize("ending", ["ended", "cancelled"])
    def test_a_job_that_slurm_has_forgotten(
        self, stand_in: Round, cluster: Callable[..., SlurmPlace], monkeypatch: pytest.MonkeyPatch, ending: str
    ) -> None:
        """Its script has noted how it ended. One that was cancelled, as by a preemption, is lost."""
        monkeypatch.setattr(job, "ATTEMPTS", 1)
        stand_in = on_one_node(stand_in, cluster())
        job_id = slurm.submit(job.write_script(stand_in.launch, cluster()))
        stand_in.await_start()
        if ending == "ended":
            stand_in.end_with(3)
        else:
            slurm.cancel(job_id)
        wait_until(lambda: slurm.find(job.job_name(stand_in.run_dir)) is None, timeout_s=20, what="it is over")
        assert (stand_in.run_dir / END).exists()
        (stand_in.run_dir / JOB).write_text('{"job_id": "99999", "attempt": 1}')
        result = stand_in.run()
        expected = (3, None, ("n1",)) if ending == "ended" else (1, "lost", ("n1",))
        assert (result.exit_code, result.ended_by, result.nodes) == expected
        assert ("99999" in (result.why or "")) == (ending == "cancelled")

    def test_a_script_submitted_by_hand_is_followed_the_last_time_that_it_was(
        self, stand_in: Round, cluster: Callable[..., SlurmPlace]
    ) -> None:
        """A user excludes the node that refused the first job; the files of the first job no longer count."""
        stand_in.end_with(0, 0)
        check = NodeCheck(argv=("hostname",), env={}, compare=("cat",), is_binding=False)
        script = job.write_script(stand_in.launch, replace(cluster(), node_check=check))
        assert not job.is_submitted(stand_in.run_dir)
        jobs = []
        for _ in range(2):
            jobs.append(slurm.submit(script))
            wait_until(lambda: slurm.find(job.job_name(stand_in.run_dir)) is None, timeout_s=30, what="it is over")
        assert noted_job(stand_in.run_dir) == {"job_id": jobs[1], "attempt": 1}
        assert (stand_in.run_dir / "slurm" / "differences.txt").read_text() == "n1\nn2\n"
        assert stand_in.run().exit_code == 0

    @pytest.mark.parametrize(
        ("compare", "why"),
        [
            (("sh", "-c", "echo n2: unlike; false"), "nodes that differ, and did not train:\nn2: unlike\nKeep one"),
            (("/nowhere/python",), "did not train: what compares its nodes could not run. .*No such file"),
        ],
    )
    def test_nodes_that_differ_and_nodes_that_nobody_could_compare(
        self, stand_in: Round, cluster: Callable[..., SlurmPlace], compare: tuple[str, ...], why: str
    ) -> None:
        check = NodeCheck(argv=("hostname",), env={}, compare=compare, is_binding=True)
        with pytest.raises(EnvironmentNotFit, match=f"(?s){why}.*--ignore-env-check"):
            job.run(stand_in.launch, place=replace(cluster(), node_check=check))
        assert not job.is_submitted(stand_in.run_dir)

    @pytest.mark.parametrize(
        ("options", "why"),
        [
            ({"partition": "moon"}, r"sbatch: .*invalid partition specified: moon"),
            ({"time": "60"}, r"PartitionTimeLimit.*--time"),  # the partition allows half an hour
        ],
    )
    def test_what_slurm_does_not_take_or_would_never_start(
        self, stand_in: Round, cluster: Callable[..., SlurmPlace], options: dict[str, str], why: str
    ) -> None:
        with pytest.raises(SchedulerError, match=why):
            job.run(stand_in.launch, place=cluster(**options))
        assert not job.is_submitted(stand_in.run_dir)
        assert slurm.find(job.job_name(stand_in.run_dir)) is None

    def test_a_job_that_nobody_wrote_down_is_not_left_beside_another(
        self, stand_in: Round, cluster: Callable[..., SlurmPlace]
    ) -> None:
        first = slurm.submit(job.write_script(stand_in.launch, cluster()))
        (stand_in.run_dir / JOB).unlink(missing_ok=True)
        assert slurm.find(job.job_name(stand_in.run_dir)) == first
        stand_in.end_with(0, 0)
        assert stand_in.run().exit_code == 0

    def test_inside_an_allocation_jobs_are_of_their_own(self, stand_in: Round, monkeypatch: pytest.MonkeyPatch) -> None:
        """The environment holds variables that salloc left, of a job that has ended."""
        for name, value in {"SLURM_JOB_ID": "99999", "SLURM_NNODES": "3", "SLURM_NTASKS": "3"}.items():
            monkeypatch.setenv(name, value)
        stand_in.end_with(0, 0)
        assert stand_in.run().exit_code == 0
        step = slurm.run_step(("hostname",), timeout_s=20)
        assert step.stdout.split() == ["n1"], step.stderr

    def test_a_drained_node_finishes_its_round_and_the_next_waits_for_it(
        self, slurm: SlurmCluster, stand_in: Round, cluster: Callable[..., SlurmPlace], messages: list[str]
    ) -> None:
        """How long a queue may be nobody knows, so a round that waits is not ended."""
        stand_in = on_one_node(stand_in, cluster(sbatch_option=("nodelist=n1",)))
        result_within = stand_in.begin()
        with slurm.drained("n1"):
            stand_in.end_with(0)
            result = result_within(30.0)
            assert (result.exit_code, result.ended_by, result.nodes) == (0, None, ("n1",))
            stand_in.run_dir.rename(stand_in.run_dir.with_name("first"))
            messages.clear()
            stop = WhenStarted(lambda: any("PENDING (" in line for line in messages))
            assert stand_in.run(RunControl(stop=stop)).ended_by == "interrupted"
            assert not any("RUNNING" in line for line in messages)

    def test_a_job_that_slurm_suspends_is_not_taken_for_hung(
        self, slurm: SlurmCluster, stand_in: Round, cluster: Callable[..., SlurmPlace], messages: list[str]
    ) -> None:
        stand_in = on_one_node(stand_in, cluster())
        stand_in.write("writes_on")
        hang_timeout_s = stand_in.place.patience_s
        case = replace(stand_in.launch.case, hang_timeout_s=hang_timeout_s)
        result_within = replace(stand_in, launch=replace(stand_in.launch, case=case)).begin()
        job_id = str(noted_job(stand_in.run_dir)["job_id"])
        slurm.ask("scontrol", "suspend", job_id)
        await_message(messages, "SUSPENDED")
        time.sleep(hang_timeout_s + 1)
        slurm.ask("scontrol", "resume", job_id)
        wait_until(lambda: "RUNNING" in messages[-1], timeout_s=20, what="it goes on")
        stand_in.end_with(0)
        result = result_within(30.0)
        assert (result.exit_code, result.ended_by) == (0, None)
