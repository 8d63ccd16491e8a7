"""One stored case: its document against the samples of its ranks, and those samples against themselves. Pure."""

import itertools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from reports.verification.finding import RESTORE, STORE_ANEW, Finding, differing
from reports.verification.statistics import NOT_RECOMPUTED, RULES, samples_s, stats
from suite.folder import Folder
from suite.reduce import steady_part
from suite.schema import CaseResult, RankRecord, RunRecord
from suite.schema_telemetry import TelemetrySummary

# What every rank that trained has measured in every iteration.
REQUIRED_COLUMNS: Final = ("start_s", "iteration_time_s", "collection_time_s", "learning_time_s")
# Of an iteration; all but the first two are taken in marked ones only.
PARTS: Final = (
    "collection_time_s",
    "learning_time_s",
    "environment_step_time_s",
    "simulate_time_s",
    "render_time_s",
    "inference_time_s",
    "all_reduce_time_s",
)
RUN_AGAIN: Final = "Leave this round out of what is published, and run it again."
# Iterations follow each other, and parts lie within their whole; timers of a GPU and of its host differ by a little.
SLACK: Final = 0.01
SLACK_S: Final = 0.002
TELEMETRY_TOLERANCE: Final = 1e-4  # its figures are stored to six digits
# Of a mean power against energy over time. Rounds up to 2026-11-23 have the mean of the readings, at most 0.5 % apart.
POWER_TOLERANCE: Final = 0.01
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def check_case(where: str, document: Mapping[str, Any], result: CaseResult) -> Iterator[Finding]:
    """Everything that differs in one file."""
    wanted = Folder(root=Path()).case_path(result.case).as_posix()
    if not where.endswith(wanted):
        yield Finding(where=where, what="the file's name", got=where, expected=wanted, next_step="Rename the file.")
    yield from _check_rounds(where, result)
    faults = [fault for record in result.completed for fault in _check_record(where, record)]
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
    figures = {
        "rounds": [record.round for record in result.completed],
        "frames_per_iteration": case.frames_per_iteration if case.has_frames else None,
        "total_fps": [case.frames_per_iteration / sample_s for sample_s in data] if case.has_frames else None,
    }
    for name, value in figures.items():
        yield from differing(where, f"extra_info.{name}", extra.get(name), value, next_step=STORE_ANEW)


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
    case, at = record.case, f"round {record.round}"
    ranks = sorted(rank.rank for rank in record.ranks)
    if ranks != list(range(case.world_size)):
        yield Finding(
            where=where,
            what=f"{at}: the ranks",
            got=str(ranks),
            expected=f"0 to {case.world_size - 1}",
            next_step=RUN_AGAIN,
        )
    for rank in record.ranks:
        yield from _check_rank(where, f"{at}, rank {rank.rank}", rank, record)
    yield from _check_outcome(where, at, record)
    yield from _check_telemetry(where, f"{at}, telemetry", record)


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


def _check_rank(where: str, at: str, rank: RankRecord, record: RunRecord) -> Iterator[Finding]:
    case = record.case
    for name, column in sorted(rank.samples.items()):
        if len(column) != case.iterations:
            yield Finding(
                where=where,
                what=f"{at}: the number of {name}",
                got=str(len(column)),
                expected=str(case.iterations),
                next_step=RUN_AGAIN,
            )
    required = REQUIRED_COLUMNS if case.learns else ("start_s", "iteration_time_s")
    holes = [name for name in required if None in rank.samples.get(name, (None,))]
    if holes:
        yield Finding(
            where=where, what=f"{at}: {', '.join(holes)}", got="incomplete", expected="measured", next_step=RUN_AGAIN
        )
        return
    if case.learns and not _SHA256.fullmatch(rank.parameters_sha256 or ""):
        yield Finding(
            where=where, what=f"{at}: parameters_sha256", got=str(rank.parameters_sha256), expected="a SHA-256"
        )
    yield from _check_times(where, at, rank)


def _check_times(where: str, at: str, rank: RankRecord) -> Iterator[Finding]:
    """The clock of a rank only goes on: a time that was edited no longer fits between its neighbours."""
    starts_s, times_s = _numbers(rank, "start_s"), _numbers(rank, "iteration_time_s")
    for iteration, ((start_s, time_s), (next_s, _)) in enumerate(
        itertools.pairwise(zip(starts_s, times_s, strict=False))
    ):
        if start_s + time_s > next_s + SLACK_S + SLACK * time_s:
            yield Finding(
                where=where,
                what=f"{at}: iteration {iteration} of {time_s:g} s",
                got=f"longer than the {next_s - start_s:g} s until the next began",
                expected="an end before that",
                next_step=RESTORE,
            )
    for name in PARTS:
        for iteration, (part_s, time_s) in enumerate(zip(rank.samples.get(name, ()), times_s, strict=False)):
            if part_s is not None and not 0 <= part_s <= time_s * (1 + SLACK) + SLACK_S:
                yield Finding(
                    where=where,
                    what=f"{at}: {name} of iteration {iteration}",
                    got=f"{part_s:g} s",
                    expected=f"from 0 to the iteration's {time_s:g} s",
                )


def _numbers(rank: RankRecord, name: str) -> list[float]:
    return [value for value in rank.samples.get(name, ()) if value is not None]


def _check_telemetry(where: str, at: str, record: RunRecord) -> Iterator[Finding]:
    seen = record.telemetry
    if seen is None or not record.ranks:
        return
    counted = [gpu.energy_counter_j for gpu in seen.gpus]
    integrated = [gpu.energy_integrated_j for gpu in seen.gpus]
    known = next(([e for e in one if e is not None] for one in (counted, integrated) if one and None not in one), None)
    is_whole = known is not None and len(known) == record.case.world_size and not seen.missing_nodes
    if known is not None and (is_whole or seen.energy_j is not None):
        yield from differing(where, f"{at}.energy_j", seen.energy_j, sum(known), tolerance=TELEMETRY_TOLERANCE)
    if seen.window_s > 0:  # else that is named below
        yield from _check_power(where, at, seen, is_whole=is_whole)
    try:
        part = steady_part(record)
    except ValueError:
        return  # named already: the round has no number
    starts_s, times_s = (part.of(_numbers(record.ranks[0], name)) for name in ("start_s", "iteration_time_s"))
    window_s = starts_s[-1] + times_s[-1] - starts_s[0]
    yield from differing(where, f"{at}.window_s", seen.window_s, window_s, tolerance=TELEMETRY_TOLERANCE)
    if seen.frames_per_joule is not None and seen.energy_j:
        expected = part.length * record.case.frames_per_iteration / seen.energy_j
        yield from differing(
            where, f"{at}.frames_per_joule", seen.frames_per_joule, expected, tolerance=TELEMETRY_TOLERANCE
        )


def _check_power(where: str, at: str, seen: TelemetrySummary, *, is_whole: bool) -> Iterator[Finding]:
    """A mean power is the integrated energy over time, of each GPU and, where ``is_whole``, of all of them."""
    integrated = [gpu.energy_integrated_j for gpu in seen.gpus]
    pairs = [
        (f"gpus[{index}].power_w", gpu.power_w, energy_j)
        for index, (gpu, energy_j) in enumerate(zip(seen.gpus, integrated, strict=True))
    ]
    if integrated and (is_whole or seen.power_w is not None):
        known = [energy_j for energy_j in integrated if energy_j is not None]
        pairs.append(("power_w", seen.power_w, sum(known) if len(known) == len(integrated) else None))
    for name, found, energy_j in pairs:
        if energy_j is not None:
            mean_w, expected_w = None if found is None else found.mean, energy_j / seen.window_s
            yield from differing(where, f"{at}.{name}.mean", mean_w, expected_w, tolerance=POWER_TOLERANCE)
