"""One set's folder: every case, what was made of several of them, and the hashes of all files."""

import json
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from reports import interference
from reports.manifest import MANIFEST
from reports.verification.case_file import check_case, rule_of
from reports.verification.finding import STORE_ANEW, Finding, as_far_as_it_makes_sense, differing
from reports.verification.hashes import below, case_paths, check_hashes, read_hashes
from reports.verification.shape import fault_of_shape
from reports.verification.statistics import RULES
from suite.campaign.runs.upstream import medians_of_rank_0, read_pairs
from suite.errors import StoreError
from suite.records.store import AGAIN_CASE, read_unsound_case
from suite.schema.record import CaseResult
from suite.statistics.aa_noise import noise_budget, read_noise, twin_pairs
from suite.statistics.reduce import counted_iterations

_MEASURE_AGAIN: Final = "Take the file anew from the campaign's folder."

type _Check = Callable[[Path, str, Sequence[CaseResult]], Iterator[Finding]]  # of a file, and how it is said


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What was looked at, and what of it differs."""

    cases: int
    rounds: int
    samples: int
    hashed_files: int
    findings: tuple[Finding, ...]
    imported_cases: int = 0  # of other tools
    imported_runs: int = 0


def is_published(folder: Path) -> bool:
    """Whether a set is part of a version that is shown: its hashes must be there too."""
    return (folder.parent / MANIFEST).is_file()


def verify_set(folder: Path, *, root: Path) -> Verified:
    """``root``: what paths are said relative to."""
    results: list[CaseResult] = []
    rules: dict[str, str] = {}  # case id -> how its document says that rounds became numbers
    paths = case_paths(folder)
    findings = [] if paths else [_no_case(below(folder, root))]
    for path in paths:
        where = below(path, root)
        try:
            result = read_unsound_case(path)
        except StoreError as error:
            findings.append(_not_valid(path, where, _without_advice(error), "a stored case"))
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        results.append(result)
        if fault := fault_of_shape(document):
            findings.append(_not_valid(path, where, fault, "a document of pytest-benchmark"))
            continue
        rules[result.case.case_id] = rule_of(document)
        findings += as_far_as_it_makes_sense(where, check_case(where, document, result))
    findings += _check_twice(folder, root, results)
    beside: dict[str, _Check] = {
        "upstream.json": partial(_check_pairs, rules),
        "noise.json": _check_noise,
        interference.FILE: _check_packing,
    }
    for name, check in beside.items():
        path = folder / name
        try:
            findings += as_far_as_it_makes_sense(below(path, root), check(path, below(path, root), results))
        except StoreError as error:
            findings.append(_not_valid(path, below(path, root), str(error), "as `bench` wrote it"))
    findings += check_hashes(folder, root, is_sealed=is_published(folder))
    return Verified(
        cases=len(results),
        rounds=sum(len(result.rounds) for result in results),
        samples=_num_samples(results),
        hashed_files=len(read_hashes(folder)),
        findings=tuple(findings),
    )


def _no_case(where: str) -> Finding:
    return Finding(
        where=where,
        what="the folder",
        got="without a case",
        expected="cases/<series>/<case>.json",
        next_step="Name a folder that `nox -s bench` wrote.",
    )


def _num_samples(results: Sequence[CaseResult]) -> int:
    ranks = (rank for result in results for record in result.rounds for rank in record.ranks)
    return sum(len(column) for rank in ranks for column in rank.samples.values())


def _check_twice(folder: Path, root: Path, results: Sequence[CaseResult]) -> Iterator[Finding]:
    ids = [result.case.case_id for result in results]
    for case_id in sorted({case_id for case_id in ids if ids.count(case_id) > 1}):
        yield Finding(where=below(folder, root), what=f"the case {case_id}", got="there twice", expected="one file")


def _check_pairs(rules: Mapping[str, str], path: Path, where: str, results: Sequence[CaseResult]) -> Iterator[Finding]:
    """Our side of every pair, and the library's, come from the samples; upstream's own was measured elsewhere."""
    records = {(result.case.case_id, record.round): record for result in results for record in result.completed}
    for index, pair in enumerate(read_pairs(path)):
        record = records.get((pair.case_id, pair.round))
        if record is None:
            yield Finding(
                where=where,
                what=f"[{index}]: round {pair.round} of {pair.case_id}",
                got="without a stored round",
                expected="a completed one",
                next_step=_MEASURE_AGAIN,
            )
            continue
        rule = RULES.get(rules.get(pair.case_id, ""), counted_iterations)
        ours_s, library_s = medians_of_rank_0(record, rule(record))
        found = {"ours_s": pair.ours_s, "library_s": pair.library_s}
        yield from differing(
            where, f"[{index}]", found, {"ours_s": ours_s, "library_s": library_s}, next_step=_MEASURE_AGAIN
        )


def _check_noise(path: Path, where: str, results: Sequence[CaseResult]) -> Iterator[Finding]:
    stored = read_noise(path)
    if stored is None:
        return
    pairs, by_id = twin_pairs(results), operator.itemgetter("case_id")
    expected = sorted((pair.to_json() for pair in pairs), key=by_id)
    yield from differing(where, "noise_budget", stored["noise_budget"], noise_budget(pairs), next_step=STORE_ANEW)
    yield from differing(where, "pairs", sorted(stored["pairs"], key=by_id), expected, next_step=STORE_ANEW)


def _check_packing(path: Path, where: str, results: Sequence[CaseResult]) -> Iterator[Finding]:
    """The verdict of an interference test follows from its own rounds; a folder without those was not kept whole."""
    stored = interference.read(path)
    if stored is None or stored.case_id is None:
        return
    rounds = sorted(
        (record for one in results if interference.is_probe(one.case) for record in one.rounds),
        key=lambda record: record.round,
    )
    if not interference.is_settled(rounds):
        yield Finding(
            where=where,
            what=f"rounds of the test in {interference.FOLDER}",
            got=str(len(rounds)),
            expected=str(len(interference.ORDER)),
            next_step=_MEASURE_AGAIN,
        )
        return
    expected = asdict(interference.judged(rounds))
    yield from differing(where, "", _plain(asdict(stored)), _plain(expected), next_step=_MEASURE_AGAIN)


def _plain(found: Mapping[str, Any]) -> Any:
    """With lists for tuples, as a file has them."""
    return json.loads(json.dumps(found))


def _without_advice(error: StoreError) -> str:
    """To run again is for whoever has the campaign's raw files; what to do here is the finding's own next step."""
    return str(error).removesuffix(AGAIN_CASE).rstrip(". ")


def _not_valid(path: Path, where: str, why: str, expected: str) -> Finding:
    got = f"not valid ({why.replace(str(path), 'the file')})"
    return Finding(where=where, what="the file", got=got, expected=expected)
