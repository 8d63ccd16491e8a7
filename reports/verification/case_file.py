"""One stored case: its document against the samples of its ranks, and those samples against themselves. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any

from reports import interference
from reports.verification.finding import RUN_AGAIN, STORE_ANEW, Finding, differing
from reports.verification.rank_samples import check_rank, check_ranks_together
from reports.verification.round_facts import check_facts
from reports.verification.statistics import NOT_RECOMPUTED, RULES, samples_s, stats
from reports.verification.telemetry import check_telemetry
from suite.records.folders import CASES, TWINS
from suite.records.soundness import fault_of_record
from suite.schema.record import CaseResult, RunRecord
from suite.statistics.aa_noise import is_twin


def check_case(where: str, document: Mapping[str, Any], result: CaseResult) -> Iterator[Finding]:
    """Everything that differs in one file."""
    case = result.case
    folder = TWINS if is_twin(case) else interference.FOLDER if interference.is_of_test(case) else CASES
    wanted = f"{folder}/{case.case_id}.json"
    if not where.endswith(wanted):
        yield Finding(where=where, what="the file's name", got=where, expected=wanted, next_step="Rename the file.")
    yield from _check_rounds(where, result)
    faults = [fault for record in result.rounds for fault in _check_record(where, record)]
    yield from faults
    if not any(fault.next_step == RUN_AGAIN for fault in faults):  # else there is no number to compare with
        yield from _check_document(where, document, result)


def rule_of(document: Mapping[str, Any]) -> str:
    """How the document says that a round becomes a number; empty where it has none."""
    benchmarks = document.get("benchmarks", [])
    return str(benchmarks[0].get("extra_info", {}).get("statistic", "")) if benchmarks else ""


# --- the document --------------------------------------------------------------------------------------------------


def _check_document(where: str, document: Mapping[str, Any], result: CaseResult) -> Iterator[Finding]:
    stored = document.get("labscale", {}).get("case_result", {})
    rounds = stored.get("rounds", [])
    source = next((record for record in rounds if _counts(record)), rounds[0])
    environment = source.get("environment", {})
    machine = document.get("machine_info", {})
    commit = document.get("commit_info", {})
    expected_commit = {
        "project": "labscale",
        "id": environment.get("git_commit"),
        "dirty": environment.get("git_dirty"),
    }
    yield from differing(where, "machine_info.environment", machine.get("environment"), environment)
    yield from differing(where, "commit_info", commit, expected_commit)
    benchmarks = document.get("benchmarks", [])
    yield from differing(where, "the number of benchmarks", len(benchmarks), 1 if result.completed else 0)
    if benchmarks and result.completed:
        yield from _check_benchmark(where, benchmarks[0], stored, result)


def _counts(record: Mapping[str, Any]) -> bool:
    return record.get("outcome") == "completed" and not record.get("profiled_ranks")


def _check_benchmark(
    where: str, benchmark: Mapping[str, Any], stored: Mapping[str, Any], result: CaseResult
) -> Iterator[Finding]:
    case, extra = result.case, benchmark.get("extra_info", {})
    yield from differing(where, "param", benchmark.get("param"), case.case_id)
    yield from differing(where, "group", benchmark.get("group"), case.series)
    yield from differing(where, "extra_info.case", extra.get("case"), stored.get("case"))
    rule = rule_of({"benchmarks": [benchmark]})
    if rule not in RULES:
        yield Finding(
            where=where,
            what="extra_info.statistic",
            got=repr(rule),
            expected=f"one of the {len(RULES)} rules that this labscale knows",
            next_step="Use the labscale that stored it, or a newer one.",
        )
        return
    data = samples_s(result, rule)
    shown = {name: value for name, value in benchmark.get("stats", {}).items() if name not in NOT_RECOMPUTED}
    yield from differing(where, "stats", shown, stats(data), next_step=STORE_ANEW)
    yield from _check_not_recomputed(where, benchmark.get("stats", {}))
    figures = {
        "rounds": [record.round for record in result.completed],
        "frames_per_iteration": case.frames_per_iteration if case.has_frames else None,
        "total_fps": [case.frames_per_iteration / sample_s for sample_s in data] if case.has_frames else None,
    }
    for name, value in figures.items():
        yield from differing(where, f"extra_info.{name}", extra.get(name), value, next_step=STORE_ANEW)


def _check_not_recomputed(where: str, shown: Mapping[str, Any]) -> Iterator[Finding]:
    """By every definition the largest value that is no outlier, or the first that is one; a round is one sample."""
    high = [value for value in shown.get("data", []) if value >= shown.get("q3", value)]
    if shown.get("hd15iqr") not in high:
        expected = "a value of stats.data from its third quartile on"
        got = str(shown.get("hd15iqr"))
        yield Finding(where=where, what="stats.hd15iqr", got=got, expected=expected, next_step=STORE_ANEW)
    yield from differing(where, "stats.iterations", shown.get("iterations"), 1, next_step=STORE_ANEW)


# --- completeness ----------------------------------------------------------------------------------------------------


def _check_rounds(where: str, result: CaseResult) -> Iterator[Finding]:
    case, numbers = result.case, sorted(record.round for record in result.rounds)
    lost = "Add the missing record, or say in the pull request why a round was left out."
    yield from differing(where, "the numbers of the rounds", numbers, list(range(len(numbers))), next_step=lost)
    yield from differing(where, "num_envs times ranks", case.num_envs * case.world_size, case.num_envs_global)
    for record in result.rounds:
        if record.outcome != "completed" and not record.reason:
            yield Finding(
                where=where,
                what=f"the reason of round {record.round}, {record.outcome},",
                got="missing",
                expected="given",
            )
    fingerprints = sorted({record.workload_sha256 for record in result.completed if record.workload_sha256})
    if len(fingerprints) > 1:
        yield Finding(
            where=where,
            what="the workload's fingerprint",
            got=f"{len(fingerprints)} different ones in its rounds",
            expected="one",
            next_step="These rounds did different work: keep those of one kind, and run the others again.",
        )


def _check_record(where: str, record: RunRecord) -> Iterator[Finding]:
    """Of a round that is not sound, which no other command reads, that alone; all else of completed ones."""
    at = f"round {record.round}"
    if fault := fault_of_record(record):
        got, expected = f"not sound: {fault}", "as labscale stores it"
        yield Finding(where=where, what=at, got=got, expected=expected, next_step=RUN_AGAIN)
        return
    if not record.counts:
        return
    for rank in record.ranks:
        yield from check_rank(where, f"{at}, rank {rank.rank}", rank, record)
    yield from check_ranks_together(where, at, record)
    yield from _check_outcome(where, at, record)
    yield from check_facts(where, at, record)
    yield from check_telemetry(where, f"{at}, telemetry", record)


def _check_outcome(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    """What a campaign calls crashed or invalid stays so, whatever the file calls it."""
    if record.exit_code:
        got = f"{record.exit_code} in a round called completed"
        yield Finding(where=where, what=f"{at}: exit_code", got=got, expected="0", next_step=RUN_AGAIN)
    policies = sorted({rank.parameters_sha256 for rank in record.ranks if rank.parameters_sha256})
    if len(policies) > 1:
        got = f"of {len(policies)} kinds after training"
        yield Finding(where=where, what=f"{at}: the ranks' parameters", got=got, expected="alike", next_step=RUN_AGAIN)
    for rank in record.ranks:
        for check in (check for check in rank.validity if check.verdict == "failure"):
            yield Finding(
                where=where,
                what=f"{at}, rank {rank.rank}: {check.name}",
                got=f"a failure ({check.found}) in a round called completed",
                expected="no failure",
                next_step=RUN_AGAIN,
            )
