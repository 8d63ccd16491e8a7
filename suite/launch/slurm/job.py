"""Run one round as a Slurm job. The job goes on when labscale is closed; the same command finds it again.

The round's folder has the job's id, and the job's name follows from the folder, so no round is submitted twice. A job
that is preempted, or whose nodes fail, is submitted once more; a training that crashes is not.
"""

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from suite.errors import EnvironmentNotFit, SchedulerError
from suite.external import slurm
from suite.files.input_file import read_input, read_text
from suite.files.json_file import explained, replace_json
from suite.files.paths import ROOT, set_aside
from suite.launch.contract import TO_ITS_END, RunControl, Say
from suite.launch.slurm.script import (
    DIFFERENCES,
    END,
    JOB,
    NODES_DIFFER,
    SCRIPT,
    NodeCheck,
    SlurmOptions,
    batch_script,
    without,
)
from suite.launch.telemetry_sampler import sampler_argv
from suite.launch.watch import LOG, NODE_LOG, Watch, prepare
from suite.schema.rank_protocol import EndedBy, LaunchResult
from suite.schema.record import Launch

type LeftOut = tuple[str, ...] | None  # dead nodes, without which another attempt is made; None: none is made
ATTEMPTS: Final = 2
SILENCE_PATIENCE_S: Final = 900.0  # of Slurm: its controller may be restarted
END_PATIENCE_S: Final = 300.0  # from scancel to the last process; nodes that hang take longest
FIRST_POLL_S, LAST_POLL_S = 1.0, 10.0  # a controller serves many users
STACK_DUMP_S: Final = 15.0
# What Slurm says when it took the nodes away, so that the same round may well run elsewhere.
LOST: Final = frozenset({"NODE_FAIL", "PREEMPTED", "BOOT_FAIL", "REVOKED"})
# Why a job waits for what will never be.
IN_VAIN: Final = frozenset(
    {
        "PartitionTimeLimit", "PartitionNodeLimit", "BadConstraints", "AccountNotAllowed", "InvalidAccount",
        "InvalidQOS", "AssocMaxWallDurationPerJobLimit", "QOSMaxWallDurationPerJobLimit", "QOSMaxNodePerJobLimit",
    }
)  # fmt: skip
# For every process of the job with a handler for SIGUSR1, as the ranks have faulthandler.
_DUMP_STACKS: Final = r"""
for environ in $(grep -lz "^LABSCALE_RUN_ID=$1$" /proc/[0-9]*/environ 2>/dev/null); do
    process=${environ#/proc/} && process=${process%/environ}
    ! grep -qE '^SigCgt:.*[2367abef][0-9a-f]{2}$' "/proc/$process/status" || kill -USR1 "$process"
done
"""


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """The job that writes to the folder."""

    job_id: str
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the script of the job ended, by the clock of the node."""

    exit_code: int
    started_unix_s: float
    ended_unix_s: float
    nodes: str  # compressed
    told_to_stop: bool  # by SIGTERM, as Slurm ends jobs


@dataclass(frozen=True, kw_only=True)
class SlurmPlace:
    """How the jobs of a campaign run."""

    options: SlurmOptions
    say: Say
    wrap: Callable[[Launch], Launch] | None = None  # into a container
    variable_prefix: str = ""  # of variables that reach the inside of it
    node_check: NodeCheck | None = None


def run(launch: Launch, control: RunControl = TO_ITS_END, *, place: SlurmPlace) -> LaunchResult:
    """Run ``launch`` as a job, or follow the one that an earlier command submitted; see ``suite.launch.contract``.

    Raises:
        SchedulerError: Slurm refuses the job, or has not answered for long; or the folder's notes of it are damaged.
        EnvironmentNotFit: the job's nodes are not alike.
    """
    run_dir = Path(launch.run_dir)
    while True:
        job = submitted(run_dir) or _submit(launch, place)
        try:
            result, dead = _follow(launch, job.job_id, place.say, control)
        except KeyboardInterrupt:
            place.say(
                f"Slurm job {job.job_id} goes on without labscale. The same command follows it; scancel {job.job_id} "
                "ends it."
            )
            raise
        if result.ended_by == "interrupted" or result.exit_code == NODES_DIFFER:
            (run_dir / JOB).unlink(missing_ok=True)
        if result.exit_code == NODES_DIFFER:
            raise EnvironmentNotFit(f"Slurm job {job.job_id} {why_untrained(run_dir)}")
        if dead is None or job.attempt == ATTEMPTS:
            if result.why:
                place.say(result.why)  # the record does not name nodes
            return result
        aside = set_aside(run_dir, "lost")
        place.say(f"{result.why}. It is submitted once more; what it left is in {aside}")
        _submit(launch, place, attempt=job.attempt + 1, dead=dead)


def write_script(launch: Launch, place: SlurmPlace) -> Path:
    """Prepare the run directory and write the script that ``sbatch`` takes."""
    run_dir = Path(launch.run_dir)
    prepare(run_dir, launch.case)
    (run_dir / "slurm").mkdir(exist_ok=True)
    (run_dir / END).unlink(missing_ok=True)
    for node in range(launch.case.nnodes):
        (run_dir / NODE_LOG.format(node)).parent.mkdir(exist_ok=True)
    text = batch_script(
        place.wrap(launch) if place.wrap else launch,
        place.options,
        name=job_name(run_dir),
        variable_prefix=place.variable_prefix,
        node_check=place.node_check,
        sampler=("env", f"PYTHONPATH={ROOT}", *sampler_argv(launch)),
    )
    (run_dir / SCRIPT).write_text(text, encoding="utf-8")
    return run_dir / SCRIPT


def job_name(run_dir: Path) -> str:
    return f"labscale-{hashlib.sha256(str(run_dir.absolute()).encode()).hexdigest()[:12]}"


def is_submitted(run_dir: Path) -> bool:
    """Whether a job writes to this directory, which therefore must not be set aside."""
    return (run_dir / JOB).exists()


def _submit(launch: Launch, place: SlurmPlace, *, attempt: int = 1, dead: Sequence[str] = ()) -> Submitted:
    """Submit the round, without its dead nodes where enough others are in service."""
    run_dir = Path(launch.run_dir)
    if earlier := slurm.find(job_name(run_dir)):  # a command died before it could write the job's id, or a job closes
        place.say(f"Slurm job {earlier} of an earlier command has this run's folder; it is cancelled first")
        _end(earlier)
    script = write_script(launch, replace(place, options=without(place.options, dead)))
    if dead and not slurm.could_start(script):
        script = write_script(launch, place)
    job = Submitted(job_id=slurm.submit(script), attempt=attempt)
    replace_json(asdict(job), run_dir / JOB)
    return job


def _follow(launch: Launch, job_id: str, say: Say, control: RunControl) -> tuple[LaunchResult, LeftOut]:
    """Wait until the job is over or has to be ended."""
    run_dir = Path(launch.run_dir)
    watch, has_started = Watch(launch, control), False
    ended_by: EndedBy | None = None
    nodes: str | None = None
    last: slurm.Job | None = None
    for job in _states(job_id, say):
        last, nodes = job, (job and job.nodes) or nodes
        if job is None or job.is_over:
            break
        if job.state == slurm.RESERVATION_GONE or (job.state == "PENDING" and job.reason in IN_VAIN):
            _end(job_id)
            (run_dir / JOB).unlink(missing_ok=True)
            raise SchedulerError(
                f"{job}: it can never start, so it is cancelled. sinfo --long and scontrol show partition say what is "
                "allowed; change --time, --partition, --account or --sbatch-option."
            )
        if job.state in {"RUNNING", *slurm.STANDS_STILL}:
            if not has_started:
                watch, has_started = Watch(launch, control), True
            ended_by = watch.look(stands_still=job.state in slurm.STANDS_STILL)
        elif control.is_stopped:
            ended_by = "interrupted"
        if ended_by:
            if ended_by != "interrupted":
                _dump_stacks(job_id, launch.case.nnodes, job_name(run_dir))
            last = _end(job_id)
            break
    end = ended(run_dir)
    nodes = nodes or (end.nodes if end else None)  # Slurm may no longer know the job
    result = replace(watch.result(0, ended_by), nodes=slurm.node_names(nodes) if nodes else ())
    if end:  # the script's own times, since it ran also while labscale was closed
        result = replace(
            result,
            exit_code=end.exit_code,
            started_utc=datetime.fromtimestamp(end.started_unix_s, UTC).isoformat(timespec="seconds"),
            wall_time_s=end.ended_unix_s - end.started_unix_s,
        )
    script_ended = end is not None and not end.told_to_stop
    return (result, None) if ended_by else judged(result, last, job_id, script_ended)


def judged(
    result: LaunchResult, job: slurm.Job | None, job_id: str, script_ended: bool
) -> tuple[LaunchResult, LeftOut]:
    """The result by Slurm's state of the job. ``script_ended``: it came to its end, and Slurm did not end it."""
    if job is None:
        if script_ended:
            return result, None
        why = f"Slurm no longer knows job {job_id}, whose script did not come to its end"
        return replace(result, exit_code=1, ended_by="lost", why=why), _to_leave_out(result.nodes)
    result = replace(result, exit_code=job.exit_code or 0, out_of_memory=job.state == "OUT_OF_MEMORY")
    if job.state in LOST:
        return replace(result, ended_by="lost", why=job.condition), _to_leave_out(result.nodes)
    if job.state == "FAILED" and (dead := slurm.dead_nodes(result.nodes)):
        return replace(result, ended_by="lost", why=f"{job.condition}, and {', '.join(dead)} does not answer"), dead
    if job.state in ("COMPLETED", "FAILED", "OUT_OF_MEMORY"):
        return result, None
    ended_by: EndedBy = "timeout" if job.state in ("TIMEOUT", "DEADLINE") else "lost"
    return replace(result, ended_by=ended_by, why=job.condition), None


def _to_leave_out(nodes: Sequence[str]) -> tuple[str, ...]:
    """The dead nodes of a lost job; none if Slurm cannot say."""
    try:
        return slurm.dead_nodes(nodes)
    except SchedulerError:
        return ()


def _states(job_id: str, say: Say) -> Iterator[slurm.Job | None]:
    """Yield the state of the job, at growing intervals; tell the user each change once."""
    last, started_s = "", time.monotonic()
    answered_s = started_s
    while True:
        job, silence = None, None
        try:
            job = slurm.job(job_id)
            answered_s = time.monotonic()
        except SchedulerError as error:
            if time.monotonic() - answered_s > SILENCE_PATIENCE_S:
                raise
            silence = f"Slurm does not answer, and is asked again: {error}"
        if (text := silence or (str(job) if job else f"Slurm no longer knows job {job_id}")) != last:
            say(text)
            last = text
        if silence is None:
            yield job
        time.sleep(min(LAST_POLL_S, FIRST_POLL_S + (time.monotonic() - started_s) / 30))


def _end(job_id: str) -> slurm.Job | None:
    """Cancel a job and wait until none of its processes is left. Raises SchedulerError if it does not end."""
    slurm.cancel(job_id)
    deadline_s = time.monotonic() + END_PATIENCE_S
    while (job := slurm.job(job_id)) and not job.is_over:
        if time.monotonic() > deadline_s:
            raise SchedulerError(f"{job} does not end, {END_PATIENCE_S:g} s after scancel. See it with squeue.")
        time.sleep(FIRST_POLL_S)
    return job


def _dump_stacks(job_id: str, nnodes: int, name: str) -> None:
    """Have the ranks write their stacks. A node that is gone must not make us wait for long."""
    step = (f"--jobid={job_id}", "--overlap", f"--nodes={nnodes}", "--ntasks-per-node=1", "--input=none")
    slurm.run_step((*step, "sh", "-c", _DUMP_STACKS, "sh", name), timeout_s=STACK_DUMP_S)
    time.sleep(1.0)  # for the ranks to write


# The files of a job, which labscale may not have watched: ``job.json`` and ``end.json``


def submitted(run_dir: Path) -> Submitted | None:
    """The job that writes to the folder; None if there is none. Raises SchedulerError if the file is damaged."""
    again = "Delete it, and the run is submitted anew; a job of it that still runs is then cancelled."
    return _read(Submitted, run_dir / JOB, again)


def ended(run_dir: Path) -> Ended | None:
    """How the script ended; None if it has not. Raises SchedulerError if the file is damaged."""
    again = "Delete it, and Slurm is asked; where it has forgotten the job, it runs again."
    return _read(Ended, run_dir / END, again)


def why_untrained(run_dir: Path) -> str:
    """Why a job did not train: its nodes differ, or could not be compared; and what to do."""
    path = run_dir / DIFFERENCES
    differences = read_text(path).strip() if path.is_file() else ""
    anyway = "or train all the same with --ignore-env-check."
    if differences:
        return (
            f"has nodes that differ, and did not train:\n{differences}\n"
            f"Keep one of them out (--sbatch-option exclude=NODE), {anyway}"
        )
    last_words = read_text(run_dir / LOG).strip().splitlines()[-3:]
    return "\n".join(
        (
            f"did not train: what compares its nodes could not run. The end of {run_dir / LOG}:",
            *(last_words or ["(nothing)"]),
            f"The checkout and its Python must be in the same folders on every node; put them there, {anyway}",
        )
    )


def _read[T](kind: type[T], path: Path, next_step: str) -> T | None:
    try:
        return TypeAdapter(kind).validate_json(read_input(path))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        why = explained(error) if isinstance(error, ValidationError) else error.strerror
        raise SchedulerError(f"{path} is not readable: {why}. {next_step}") from error
