"""What is stored of a case and of a set, as the figures need it; and each document against the samples in it."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any, Final

from reports.verification.finding import OR_LIST, STORE_ANEW, Finding, Json, Place, counted
from reports.verification.runs import Run
from reports.verification.samples.rank import SHORTEST_S, columns_of, pieces_of
from reports.verification.samples.run import check_round, counts, is_pipeline, processes
from reports.verification.samples.shape import case_and_rounds, json_files, read_json

RULE: Final = (  # each document names the rule of its numbers
    "mean over the last four fifths of the iterations, without the marked ones where others exist, of the slowest "
    "rank's iteration_time_s, in seconds; of several trainings on one GPU their harmonic mean"
)
CASES: Final = "cases"
TWINS: Final = "a_a"
ALONE: Final = "alone"  # copies of cases in turns
ALONE_SUFFIX: Final = "-alone"
TWIN_SUFFIX: Final = "-aa"
COLD_SUFFIX: Final = "-cold"
PLAN: Final = "plan.json"
PAIRS: Final = "upstream.json"
ASKED: Final = "as many rounds as were asked for"
# What a case id says of its case: <series>/<library>-<stack>[-cpu]-n<num_envs_global>-<nnodes>x<nproc>[-<variant>]
_CASE_ID: Final = re.compile(
    r"(?P<series>[^/]+)/(?P<rl_library>[^-]+)-(?P<stack>[^-]+)(?P<device>-cpu)?"
    r"-n(?P<num_envs_global>\d+)-(?P<nnodes>\d+)x(?P<nproc_per_node>\d+)(?:-(?P<variant>.+))?"
)
_OF_A_ROUND: Final = {"seed", "cpus_allowed", "cores_numa_nodes", "gpu_numa_node"}  # settings that may change


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


@dataclass(frozen=True, kw_only=True)
class StoredSet:
    """``name`` is the folder's below what is verified; ``findings`` are those of its files, each alone.

    ``rejected`` are the case files whose records are too wrong for figures.
    """

    name: str
    folder: Path
    cases: tuple[StoredCase, ...]
    findings: tuple[Finding, ...]
    has_plan: bool
    rejected: tuple[str, ...] = ()

    def cases_of(self, is_copy: bool) -> list[StoredCase]:
        """The copies that ran alone of cases in turns, or all other cases."""
        return [stored for stored in self.cases if stored.case_id.endswith(ALONE_SUFFIX) == is_copy]


# --- one case ---


def read_case(path: Path, where: str) -> tuple[StoredCase | None, list[Finding]]:
    """Return the case, or None if its file cannot be read, with everything that differs in the file."""
    place = Place(where=where)
    try:
        document = read_json(path)
        case, rounds = case_and_rounds(document)
        benchmarks, ended_because = document["benchmarks"], document["labscale"]["ended_because"]
        rule = str(benchmarks[0]["extra_info"].get("statistic", "")) if benchmarks else RULE
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        fault = f"missing: {error}" if isinstance(error, LookupError) else error
        place.fault("the file", f"not valid ({fault})", "a stored case")
        return None, place.findings
    stored = StoredCase(where=where, case=case, rounds=rounds, ended_because=ended_because, rule=rule)
    with place.as_far_as_possible():
        _check_name(place, stored)
        _check_work(place, stored, document["machine_info"])
        if rule == RULE:
            _check_document(place, stored, document)
        else:
            step = "Use the labscale that stored it, or a newer one."
            place.fault("extra_info.statistic", repr(rule), "the rule that this labscale knows", step)
    return stored, place.findings


def _check_name(place: Place, stored: StoredCase) -> None:
    """Check the file's place against the case id, the case id against the case, and that no round is left out."""
    case, case_id = stored.case, stored.case_id
    kinds = {TWIN_SUFFIX: TWINS, ALONE_SUFFIX: ALONE}
    folder = next((kind for suffix, kind in kinds.items() if case_id.endswith(suffix)), CASES)
    wanted = f"{folder}/{case_id}.json"
    if not f"/{stored.where}".endswith(f"/{wanted}"):
        place.fault("the file's name", stored.where, wanted, "Rename the file.")
    match = _CASE_ID.fullmatch(case_id)
    if match is None:
        place.fault("case_id", case_id, "a series, a library, a stack and its sizes")
        return
    for name, text in match.groupdict().items():
        if name in {"series", "rl_library", "stack", "num_envs_global", "nnodes", "nproc_per_node"}:
            place.same(f"case.{name}, which its id says,", str(case[name]), text)
    variant = f"-{match['variant']}".removesuffix(ALONE_SUFFIX).removesuffix(TWIN_SUFFIX)
    cold = "empty" if variant.endswith(COLD_SUFFIX) else "kept"
    place.same("case.kernel_cache, which its id says,", case["kernel_cache"], cold)
    environments = case["num_envs"] * (1 if is_pipeline(case) else processes(case))
    place.same("num_envs times ranks", environments, case["num_envs_global"])
    numbers = sorted(record["round"] for record in stored.rounds)
    lost = "Add the missing record, or say in the pull request why a round was left out."
    place.same("the numbers of the rounds", numbers, list(range(len(numbers))), lost)


def _check_work(place: Place, stored: StoredCase, machine_info: Json) -> None:
    """Check that all rounds did the same work with the same settings, and with the packages that the document names."""
    kinds: dict[str, list[Json]] = {}
    for record in stored.completed:
        if record["workload"]:
            kinds.setdefault("the workload's fingerprint", []).append(record["workload"])
        for rank in record["ranks"]:
            settings = {name: value for name, value in rank["settings"].items() if name not in _OF_A_ROUND}
            kinds.setdefault(f"the settings of rank {rank['rank']}", []).append(settings)
            for name in sorted(settings.keys() & machine_info.keys()):
                place.same(f"machine_info.{name}", machine_info[name], settings[name])
    for what, values in kinds.items():
        if names := sorted({name for value in values for name in value if value[name] != values[0].get(name)}):
            step = "These rounds did different work: keep those of one kind, and run the others again."
            place.fault(what, f"not the same in all rounds: {', '.join(names)}", "the same", step)


def _check_document(place: Place, stored: StoredCase, document: Json) -> None:
    """Check every round, and what the document says of them all, if each has a number."""
    have_numbers = [check_round(place.within(f"round {record['round']}"), record) for record in stored.rounds]
    if not all(have_numbers):
        return
    for record in stored.completed:
        stored.times_s[record["round"]] = Run(record).iteration_s()
    source = next(iter(stored.completed), stored.rounds[0])["environment"]
    commit = {"project": "labscale", "id": source["git_commit"], "dirty": source["git_dirty"]}
    place.same("commit_info", document["commit_info"], commit)
    benchmarks, data = document["benchmarks"], list(stored.times_s.values())
    place.same("the number of benchmarks", len(benchmarks), int(bool(data)))
    if not benchmarks or not data:
        return
    case, extra, stats = stored.case, benchmarks[0]["extra_info"], benchmarks[0]["stats"]
    has_frames = case["workload"] != "all_reduce"
    figures = {
        "runs": list(stored.times_s),
        "frames_per_iteration": stored.frames if has_frames else None,
        "total_fps": [stored.frames / time_s for time_s in data] if has_frames else None,
    }
    place.same("param", benchmarks[0]["param"], case["case_id"], STORE_ANEW)
    place.same("extra_info", {name: extra.get(name) for name in figures}, figures, STORE_ANEW)
    expected = benchmark_stats(data)
    place.same("stats", {name: stats.get(name) for name in expected}, expected, STORE_ANEW)


def benchmark_stats(data: Sequence[float]) -> Json:
    """Return what pytest-benchmark stores of ``data``, which is not empty, but for its quartiles and outliers."""
    return {
        "data": list(data), "min": min(data), "max": max(data), "mean": fmean(data), "median": median(data),
        "stddev": stdev(data) if len(data) > 1 else 0, "rounds": len(data), "iterations": 1,
        "total": math.fsum(data), "ops": 1 / fmean(data),
    }  # fmt: skip


# --- one set ---


def case_paths(folder: Path) -> list[Path]:
    return sorted(path for name in (CASES, TWINS, ALONE) for path in json_files(folder / name))


def read_set(folder: Path, *, root: Path) -> StoredSet:
    """Read and check each file of a set; paths are relative to ``root``."""
    place = Place(where=folder.relative_to(root).as_posix())
    paths = [path.relative_to(root).as_posix() for path in case_paths(folder)]
    read = [read_case(root / path, path) for path in paths]
    cases = [stored for stored, _ in read if stored is not None]
    findings = [finding for _, of_case in read for finding in of_case]
    if not read:
        place.fault(
            "the folder", "without a case", f"{CASES}/<series>/<case>.json", "Name a folder that `bench` wrote."
        )
    for name, check in ((PAIRS, _check_pairs), (PLAN, _check_plan)):
        if (path := folder / name).is_file():
            beside = Place(where=path.relative_to(root).as_posix())
            try:
                check(beside, read_json(path), cases)
            except (ValueError, LookupError, TypeError, AttributeError) as error:
                got = f"not valid (the file is not readable: {type(error).__name__}: {error})"
                beside.fault("the file", got, "as `bench` wrote it")
            findings += beside.findings
    with place.as_far_as_possible():
        _check_complete(place, cases)
    rejected = (path for path, (stored, _) in zip(paths, read, strict=True) if stored is None or stored.is_rejected)
    return StoredSet(
        name=place.where,
        folder=folder,
        cases=tuple(cases),
        findings=(*findings, *place.findings),
        has_plan=(folder / PLAN).is_file(),
        rejected=tuple(rejected),
    )


def _check_pairs(place: Place, pairs: Any, cases: Sequence[StoredCase]) -> None:
    """Check our side of every pair, and the library's; upstream's own time was measured elsewhere."""
    records = {(stored.case_id, record["round"]): (stored, record) for stored in cases for record in stored.completed}
    for index, pair in enumerate(pairs):
        stored, record = records.get((pair["configuration_id"], pair["run"]), (None, None))
        if stored is None or record is None or pair["run"] not in stored.times_s:
            what = f"[{index}]: round {pair['run']} of {pair['configuration_id']}"
            place.fault(what, "without a stored round", "a completed one")
            continue
        every = Run(record).counted()
        begins = {first for first, _ in pieces_of(columns_of(record["ranks"][0]))[1:]}
        iterations = [iteration for iteration in every if iteration not in begins] or every  # by the library's clock
        samples = record["ranks"][0]["samples"]
        expected = {
            "ours_s": median([samples["iteration_time_s"][iteration] for iteration in iterations]),
            "library_s": _library_s(stored, samples, iterations),
        }
        if pair.get("theirs_iterations_s") is not None:  # else of iterations that were chosen by another rule
            place.same(f"[{index}]", {name: pair[name] for name in expected}, expected)
        place.between(f"[{index}].theirs_s", pair["theirs_s"], SHORTEST_S, record["wall_time_s"], "s")


def _library_s(stored: StoredCase, samples: Json, iterations: Sequence[int]) -> float | None:
    if stored.case["rl_library"] == "rsl_rl":
        parts = [samples.get(f"rsl_rl.{name}_time_s", []) for name in ("collection", "learning")]
        times_s = [parts[0][i] + parts[1][i] for i in iterations] if all(parts) else []
    else:
        rates = samples.get("rl_games.total_fps", [])
        times_s = [stored.frames / rates[i] for i in iterations] if rates else []
    return median(times_s) if times_s else None


def _check_plan(place: Place, plan: Any, cases: Sequence[StoredCase]) -> None:
    """Check cases and rounds against ``{"configurations": {id: runs}, "missing": {id: why}}``."""
    stored, missing = {case.case_id: case for case in cases}, plan.get("missing", {})
    for case_id, rounds in sorted(plan["configurations"].items()):
        case = stored.get(case_id)
        if missing.get(case_id):
            continue
        if case is None:
            place.fault(case_id, "not stored", "stored, or under `missing` with why")
        elif len(case.rounds) < rounds and case.ended_because in {None, ASKED}:
            got, expected = counted(len(case.rounds), "round"), f"{rounds}, or why there are fewer"
            place.fault(f"rounds of {case_id}", got, expected)
    for case_id in sorted(stored.keys() - plan["configurations"].keys()):
        place.fault(case_id, "stored", "not: the plan does not have it")


def _check_complete(place: Place, cases: Sequence[StoredCase]) -> None:
    """Check that no case is there twice, that twins have their case, and that every case says why it ended."""
    ids = [stored.case_id for stored in cases]
    for case_id in sorted({*ids}):
        place.same(f"the number of files of {case_id}", ids.count(case_id), 1)
        if case_id.endswith(TWIN_SUFFIX) and case_id.removesuffix(TWIN_SUFFIX) not in ids:
            place.fault(f"the case that {case_id} repeats", "missing", "stored too")
    silent = [one for one in cases if not one.ended_because and any(r["outcome"] != "skipped" for r in one.rounds)]
    if silent:
        got = f"missing in {len(silent)} of {counted(len(cases), 'case')}"
        place.fault("the reason why no further round ran", got, "given in each (ended_because)", OR_LIST)
