"""One stored case: its document against the samples of its ranks, and those samples against themselves."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from reports.verification import formulas
from reports.verification.finding import RUN_AGAIN, STORE_ANEW, Finding, Json, as_far_as_possible, differing
from reports.verification.samples.rank_samples import check_rank, check_ranks_together
from reports.verification.samples.round_facts import check_facts, is_pipeline, processes
from reports.verification.samples.shape import case_and_rounds, fault_of_round, read_json
from reports.verification.samples.telemetry import check_telemetry

CASES: Final = "cases"
TWINS: Final = "a_a"
ALONE: Final = "alone"  # copies of cases in turns
ALONE_SUFFIX: Final = "-alone"
TWIN_SUFFIX: Final = "-aa"
COLD_SUFFIX: Final = "-cold"
# What a case id says of its case: <series>/<library>-<stack>[-cpu]-n<num_envs_global>-<nnodes>x<nproc>[-<variant>]
_CASE_ID: Final = re.compile(
    r"(?P<series>[^/]+)/(?P<rl_library>[^-]+)-(?P<stack>[^-]+)(?P<device>-cpu)?"
    r"-n(?P<num_envs_global>\d+)-(?P<nnodes>\d+)x(?P<nproc_per_node>\d+)(?:-(?P<variant>.+))?"
)


@dataclass(frozen=True, kw_only=True)
class StoredCase:
    """A case as it is stored. ``times_s`` has the figure of every completed round."""

    where: str
    case: Json
    rounds: list[Json]
    ended_because: str | None
    rule: str
    times_s: dict[int, float] = field(default_factory=dict)

    @property
    def case_id(self) -> str:
        return str(self.case["case_id"])

    @property
    def completed(self) -> list[Json]:
        return [record for record in self.rounds if counts(record)]

    @property
    def is_rejected(self) -> bool:
        """Whether a completed round has no figure, because the file is wrong before figures could be computed."""
        return len(self.times_s) < len(self.completed)

    @property
    def frames(self) -> int:
        return int(self.case["num_envs_global"] * self.case["num_steps_per_env"])

    @property
    def seconds_per_iteration(self) -> float:
        """The figure of a case that completed: the geometric mean over its processes."""
        return formulas.geometric_mean([*self.times_s.values()])

    @property
    def frames_per_s(self) -> float:
        return self.frames / self.seconds_per_iteration


def counts(record: Json) -> bool:
    return record["outcome"] == "completed" and not record["profiled_ranks"]


def read_case(path: Path, where: str) -> tuple[StoredCase | None, list[Finding]]:
    """Return the case, or None if its file cannot be read, with everything that differs in the file."""
    try:
        document = read_json(path)
        case, rounds = case_and_rounds(document)
        benchmarks, ended_because = document["benchmarks"], document["labscale"]["ended_because"]
        rule = str(benchmarks[0]["extra_info"].get("statistic", "")) if benchmarks else formulas.RULE
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        fault = f"missing: {error}" if isinstance(error, LookupError) else error
        return None, [Finding(where=where, what="the file", got=f"not valid ({fault})", expected="a stored case")]
    stored = StoredCase(where=where, case=case, rounds=rounds, ended_because=ended_because, rule=rule)
    return stored, list(as_far_as_possible(where, _check(stored, document)))


def _check(stored: StoredCase, document: Json) -> Iterator[Finding]:
    where, case = stored.where, stored.case
    yield from _check_name(stored)
    yield from _check_rounds(stored)
    if stored.rule != formulas.RULE:
        expected = "the rule that this labscale knows"
        next_step = "Use the labscale that stored it, or a newer one."
        what, got = "extra_info.statistic", repr(stored.rule)
        yield Finding(where=where, what=what, got=got, expected=expected, next_step=next_step)
        return
    faults = [finding for record in stored.rounds for finding in _check_round(where, record)]
    yield from faults
    if any(finding.next_step == RUN_AGAIN for finding in faults):
        return  # there is no number to compare with
    for record in stored.completed:
        stored.times_s[record["round"]] = formulas.seconds_per_iteration(record)
    source = next(iter(stored.completed), stored.rounds[0])["environment"]
    commit = {"project": "labscale", "id": source["git_commit"], "dirty": source["git_dirty"]}
    yield from differing(where, "commit_info", document["commit_info"], commit)
    benchmarks = document["benchmarks"]
    yield from differing(where, "the number of benchmarks", len(benchmarks), int(bool(stored.times_s)))
    if benchmarks and stored.times_s:
        yield from _check_benchmark(stored, benchmarks[0], case)


def _check_benchmark(stored: StoredCase, benchmark: Json, case: Json) -> Iterator[Finding]:
    where, extra, shown = stored.where, benchmark["extra_info"], dict(benchmark["stats"])
    yield from differing(where, "param", benchmark["param"], case["case_id"])
    yield from differing(where, "group", benchmark["group"], case["series"])
    data = list(stored.times_s.values())
    high, iterations = shown.pop("hd15iqr", None), shown.pop("iterations", None)
    expected = dict(formulas.benchmark_stats(data))
    yield from differing(where, "stats", shown, expected, next_step=STORE_ANEW)
    # Its definition changed between versions: the largest value that is no outlier, or the first that is one.
    if high not in [value for value in shown["data"] if value >= shown["q3"]]:
        text = "a value of stats.data from its third quartile on"
        yield Finding(where=where, what="stats.hd15iqr", got=str(high), expected=text, next_step=STORE_ANEW)
    has_frames = case["workload"] != "all_reduce"
    figures: dict[str, tuple[Any, Any]] = {
        "stats.iterations": (iterations, 1),
        "extra_info.runs": (extra.get("runs"), list(stored.times_s)),
        "extra_info.frames_per_iteration": (extra.get("frames_per_iteration"), stored.frames if has_frames else None),
        "extra_info.total_fps": (
            extra.get("total_fps"),
            [stored.frames / time_s for time_s in data] if has_frames else None,
        ),
    }
    for name, (found, wanted) in figures.items():
        yield from differing(where, name, found, wanted, next_step=STORE_ANEW)


def _check_name(stored: StoredCase) -> Iterator[Finding]:
    """Check the file's place against the case id, and the case id against the case."""
    where, case, case_id = stored.where, stored.case, stored.case_id
    kinds = {TWIN_SUFFIX: TWINS, ALONE_SUFFIX: ALONE}
    folder = next((kind for suffix, kind in kinds.items() if case_id.endswith(suffix)), CASES)
    wanted = f"{folder}/{case_id}.json"
    if not f"/{where}".endswith(f"/{wanted}"):
        yield Finding(where=where, what="the file's name", got=where, expected=wanted, next_step="Rename the file.")
    match = _CASE_ID.fullmatch(case_id)
    if match is None:
        yield Finding(where=where, what="case_id", got=case_id, expected="a series, a library, a stack and its sizes")
        return
    for name, text in match.groupdict().items():
        if name in {"series", "rl_library", "stack", "num_envs_global", "nnodes", "nproc_per_node"}:
            yield from differing(where, f"case.{name}, which its id says,", str(case[name]), text)
    variant = f"-{match['variant']}".removesuffix(ALONE_SUFFIX).removesuffix(TWIN_SUFFIX)
    cold = "empty" if variant.endswith(COLD_SUFFIX) else "kept"
    yield from differing(where, "case.kernel_cache, which its id says,", case["kernel_cache"], cold)
    yield from differing(where, "case.device, which its id says,", case["device"], "cpu" if match["device"] else "cuda")


def _check_rounds(stored: StoredCase) -> Iterator[Finding]:
    where, case = stored.where, stored.case
    numbers = sorted(record["round"] for record in stored.rounds)
    lost = "Add the missing record, or say in the pull request why a round was left out."
    yield from differing(where, "the numbers of the rounds", numbers, list(range(len(numbers))), next_step=lost)
    environments = case["num_envs"] * (1 if is_pipeline(case) else processes(case))
    yield from differing(where, "num_envs times ranks", environments, case["num_envs_global"])
    for record in stored.rounds:
        if record["outcome"] != "completed" and not record["reason"]:
            what = f"the reason of round {record['round']}, {record['outcome']},"
            yield Finding(where=where, what=what, got="missing", expected="given")
    kinds = {repr(sorted(record["workload"].items())) for record in stored.completed if record["workload"]}
    if len(kinds) > 1:
        got = f"{len(kinds)} different ones in its rounds"
        step = "These rounds did different work: keep those of one kind, and run the others again."
        what = "the workload's fingerprint"
        yield Finding(where=where, what=what, got=got, expected="one", next_step=step)


def _check_round(where: str, record: Json) -> Iterator[Finding]:
    at = f"round {record['round']}"
    if fault := fault_of_round(record):
        got, expected = f"not sound: {fault}", "as labscale stores it"
        yield Finding(where=where, what=at, got=got, expected=expected, next_step=RUN_AGAIN)
        return
    if not counts(record):
        return
    for rank in record["ranks"]:
        yield from check_rank(where, f"{at}, rank {rank['rank']}", rank, record)
    yield from check_ranks_together(where, at, record)
    yield from check_facts(where, at, record)
    yield from check_telemetry(where, f"{at}, telemetry", record)
