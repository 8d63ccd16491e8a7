"""Turns a run directory into a RunRecord: the samples of every rank, and one verdict with its reason."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from suite.errors import Interrupted, StoreError
from suite.files.input_file import read_text
from suite.files.wording import counted, listed
from suite.records.checks import checks_from_outside
from suite.records.failure import find_failure
from suite.records.network import apart, node_clocks, transport_of
from suite.records.rank_file import RankFile, nccl_log_path, rank_paths, read_rank_file
from suite.records.redaction import public
from suite.records.telemetry import with_telemetry
from suite.records.validation import fault_of
from suite.schema.rank_protocol import LaunchResult
from suite.schema.record import SAMPLE_COLUMNS, Case, Environment, Outcome, RankRecord, RunRecord, Scalar
from suite.schema.stored import LARGEST

_SHOWN: Final = 3  # differences of two workloads


def collect(
    run_dir: Path,
    case: Case,
    round_index: int,
    result: LaunchResult,
    environment: Environment,
    *,
    argv: Sequence[str] = (),
) -> RunRecord:
    """Read the round's files in ``run_dir`` and decide its outcome.

    Raises:
        Interrupted: the user ended the round; it has no outcome and runs again.
        StoreError: the run directory cannot be read.
    """
    if result.ended_by == "interrupted":
        raise Interrupted(f"{run_dir}: the run was ended before it finished. Run the same command again to resume.")
    try:
        files = [read_rank_file(rank, path) for rank, path in rank_paths(run_dir).items()]
        for file in files:
            file.validity += checks_from_outside(run_dir, case, environment, file, files)
        outcome, reason = _verdict(run_dir, case, files, result)
    except OSError as error:
        raise StoreError(f"cannot read {error.filename or run_dir}: {error.strerror}. Repeat this run.") from error
    record = RunRecord(
        case=case,
        round=round_index,
        outcome=outcome,
        reason=reason,
        exit_code=result.exit_code,
        started_utc=result.started_utc,
        wall_time_s=result.wall_time_s,
        environment=environment,
        argv=tuple(argv),
        ranks=tuple(_rank_record(file, case) for file in files),
        image_digest=result.image_digest,
        workload=next((file.workload for file in files if file.workload is not None), None),
        clocks=node_clocks(case, files),
    )
    if record.outcome == "completed" and (fault := fault_of(record)):
        record = replace(record, outcome="invalid", reason=fault)
    logs = {}
    for file in files:
        with suppress(OSError):  # a log that cannot be read costs no round
            logs[file.rank] = read_text(nccl_log_path(run_dir, file.rank))
    record = replace(record, transport=transport_of(record, files, logs))
    observed = with_telemetry(run_dir, record, files)
    if observed.telemetry is not None and (fault := fault_of(observed)):
        observed = replace(record, telemetry_note=f"the samplers' figures make no sense: {fault}")
    return _published(observed, run_dir, result.nodes)


def _published(record: RunRecord, run_dir: Path, nodes: Sequence[str]) -> RunRecord:
    """Return a copy whose messages do not name this machine and its nodes; the round's logs keep the whole text."""

    def named(text: str | None) -> str | None:
        return None if text is None else public(text, folders={run_dir: "ROUND"}, nodes=nodes)

    return replace(
        record,
        reason=named(record.reason),
        telemetry_note=named(record.telemetry_note),
        ranks=tuple(replace(rank, error=named(rank.error)) for rank in record.ranks),
    )


def _verdict(run_dir: Path, case: Case, files: Sequence[RankFile], result: LaunchResult) -> tuple[Outcome, str | None]:
    if result.ended_by in ("timeout", "hung", "lost"):
        return result.ended_by, _ended_reason(case, files, result)
    if result.out_of_memory:
        return "oom", "the memory limit of the container or job was reached, and the kernel killed a process of it"
    if result.why is not None:
        return "crashed", result.why  # the launcher saw the cause; the ranks' errors follow from it
    if failure := find_failure(run_dir, files, result.exit_code, result.oom_kills):
        return failure
    fault = next(_faults(case, files), None)
    return ("invalid", fault) if fault else ("completed", None)


def _ended_reason(case: Case, files: Sequence[RankFile], result: LaunchResult) -> str:
    if result.why is not None:
        why = result.why
    elif result.ended_by == "timeout":
        why = f"not finished after {case.timeout_s:g} s, start-up included"
    else:
        why = f"no process wrote anything for {case.hang_timeout_s:g} s"
    progress = "; ".join(f"rank {file.rank}: {_progress(file, case)}" for file in files) or "no process had started"
    stacks = " The stacks of the processes are in their stderr under logs." if result.why is None else ""
    return f"{why}; {progress}.{stacks}"


def _progress(file: RankFile, case: Case) -> str:
    """Return how far a rank got."""
    if file.error:
        return str(file.error)
    if file.end:
        return "finished its training, but did not exit"
    if file.iterations:
        return f"{len(file.iterations)} of {case.iterations} iterations"
    return f"in start-up, after {[*file.phases_s][-1]}" if file.phases_s else "in start-up"


def _faults(case: Case, files: Sequence[RankFile]) -> Iterator[str]:
    """Yield every reason why a run that ended well is no measurement, the plainest first."""
    yield from (file.corrupt for file in files if file.corrupt)
    ranks = {file.rank for file in files}
    if missing := sorted(set(range(case.num_processes)) - ranks):
        yield f"{listed('rank', missing)} of {case.num_processes} wrote no file"
    if surplus := sorted(ranks - set(range(case.num_processes))):
        yield f"{listed('rank', surplus)} should not be in a configuration of {counted(case.num_processes, 'process')}"
    for file in files:
        if file.start is None:
            yield f"rank {file.rank} has no start event"
        elif file.start.rank != file.rank:
            yield f"the file of rank {file.rank} was written by rank {file.start.rank}"
    for file in files:
        yield from _rank_faults(case, file)
    yield from filter(None, [apart(case, files, node_clocks(case, files))])
    yield from _workload_faults(files)
    failed = ((file.rank, check) for file in files for check in file.validity if check.verdict == "failure")
    yield from (f"rank {rank}: {check.name}: {check.found} ({check.fault})" for rank, check in failed)
    digests = {file.rank: file.end.parameters_sha256 for file in files if file.end and file.end.parameters_sha256}
    if len(set(digests.values())) > 1 and case.trainings_per_gpu == 1:
        of_ranks = ", ".join(f"rank {rank}: {digest[:12]}" for rank, digest in digests.items())
        yield f"the ranks ended with different parameters, so they did not train one policy (SHA-256 of {of_ranks})"


def _rank_faults(case: Case, file: RankFile) -> Iterator[str]:
    if len(file.iterations) != case.iterations:
        yield f"rank {file.rank} finished {len(file.iterations)} of {case.iterations} iterations"
    if file.end is None:
        yield f"rank {file.rank} has no end event"
    for row, event in enumerate(file.iterations):
        if event.iteration != row:
            yield f"rank {file.rank} wrote iteration {event.iteration} where {row} was due"
        for column, value in event.samples.items():
            if value is not None and not _is_kept(value):
                yield f"rank {file.rank}, iteration {row}: {column} is {value}"


def _workload_faults(files: Sequence[RankFile]) -> Iterator[str]:
    """Compare every rank's fingerprint with the first rank's."""
    described = [(file.rank, file.workload) for file in files if file.workload is not None]
    for rank, workload in described[1:]:
        first_rank, first = described[0]
        if workload != first:
            differences = workload_differences(workload, first)
            more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
            yield f"rank {rank} ran another workload than rank {first_rank}: {'; '.join(differences[:_SHOWN])}{more}"


def workload_differences(first: Mapping[str, Scalar], second: Mapping[str, Scalar]) -> tuple[str, ...]:
    """Return every setting that differs between two fingerprints, as ``name: value and value``, sorted by name."""

    def value(workload: Mapping[str, Scalar], name: str) -> str:
        return repr(workload[name]) if name in workload else "not set"

    differ = [name for name in first.keys() | second.keys() if first.get(name, ...) != second.get(name, ...)]
    return tuple(f"{name}: {value(first, name)} and {value(second, name)}" for name in sorted(differ))


def _rank_record(file: RankFile, case: Case) -> RankRecord:
    written = dict.fromkeys(column for event in file.iterations for column in event.samples)
    columns = dict.fromkeys([column for column in SAMPLE_COLUMNS if column in written]) | written
    return RankRecord(
        rank=file.rank,
        local_rank=file.start.local_rank if file.start else file.rank % case.processes_per_node,
        phases_s=file.phases_s,
        settings=file.settings,
        samples={column: tuple(_kept(event.samples.get(column)) for event in file.iterations) for column in columns},
        validity=file.validity,
        **(file.end.model_dump(exclude={"event"}) if file.end else {}),
        error=str(file.error) if file.error else None,
        node=file.node,
    )


def _kept(value: float | None) -> float | None:
    """Replace what a record cannot store, such as NaN, by None; the record's reason names the value."""
    return value if value is not None and _is_kept(value) else None


def _is_kept(value: float) -> bool:
    return math.isfinite(value) and abs(value) <= LARGEST
