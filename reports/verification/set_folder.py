"""One set's folder: every case, what was made of several of them, and the hashes of all files."""

import hashlib
import json
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from reports.verification.case_file import check_case, rule_of
from reports.verification.finding import STORE_ANEW, Finding, differing
from reports.verification.statistics import RULES
from suite.a_a import noise_budget, twin_pairs
from suite.errors import StoreError
from suite.reduce import counted_iterations
from suite.schema import CaseResult
from suite.store import read_case
from suite.upstream import Pair, medians_of_rank_0

SUMS: Final = "SHA256SUMS"
_HASH_AGAIN: Final = "Restore the file; or, if it was added on purpose, write the hashes again with --write-hashes."
_MEASURE_AGAIN: Final = "Take the file anew from the campaign's folder."


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What was looked at, and what of it differs."""

    cases: int
    rounds: int
    samples: int
    hashed_files: int
    findings: tuple[Finding, ...]


def verify_set(folder: Path, *, root: Path) -> Verified:
    """``root``: what paths are said relative to."""
    findings: list[Finding] = []
    results: list[CaseResult] = []
    rules: dict[str, str] = {}  # case id -> how its document says that rounds became numbers
    paths = case_paths(folder)
    if not paths:
        findings.append(
            Finding(
                where=_below(folder, root),
                what="the folder",
                got="without a case",
                expected="cases/<series>/<case>.json",
                next_step="Name a folder that `nox -s bench` wrote.",
            )
        )
    for path in paths:
        where = _below(path, root)
        try:
            result = read_case(path)
        except StoreError as error:
            text = str(error).replace(str(path), "the file")
            findings.append(Finding(where=where, what="the file", got=f"not valid ({text})", expected="a stored case"))
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        results.append(result)
        rules[result.case.case_id] = rule_of(document)
        findings += check_case(where, document, result)
    findings += [
        *_check_twice(folder, root, results),
        *_check_pairs(folder, root, results, rules),
        *_check_noise(folder, root, results),
        *_check_hashes(folder, root),
    ]
    return Verified(
        cases=len(results),
        rounds=sum(len(result.rounds) for result in results),
        samples=sum(
            len(column)
            for result in results
            for record in result.rounds
            for rank in record.ranks
            for column in rank.samples.values()
        ),
        hashed_files=len(_read_sums(folder)),
        findings=tuple(findings),
    )


def case_paths(folder: Path) -> list[Path]:
    return sorted(path for name in ("cases", "a_a") for path in (folder / name).rglob("*.json"))


def write_hashes(folder: Path) -> Path:
    """``SHA256SUMS`` of all files of a set, as ``sha256sum --check`` reads it."""
    lines = [f"{_sha256(path)}  {path.relative_to(folder).as_posix()}\n" for path in _members(folder)]
    path = folder / SUMS
    path.write_text("".join(lines), encoding="utf-8")
    return path


def _check_twice(folder: Path, root: Path, results: Sequence[CaseResult]) -> Iterator[Finding]:
    ids = [result.case.case_id for result in results]
    for case_id in sorted({case_id for case_id in ids if ids.count(case_id) > 1}):
        yield Finding(where=_below(folder, root), what=f"the case {case_id}", got="there twice", expected="one file")


def _check_pairs(
    folder: Path, root: Path, results: Sequence[CaseResult], rules: Mapping[str, str]
) -> Iterator[Finding]:
    """Our side of every pair, and the library's, come from the samples; upstream's own was measured elsewhere."""
    path = folder / "upstream.json"
    stored = _read_json(path)
    if stored is None:
        return
    where = _below(path, root)
    records = {(result.case.case_id, record.round): record for result in results for record in result.completed}
    for index, entry in enumerate(stored):
        pair = Pair(**entry)
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
        ours_s, library_s = medians_of_rank_0(record, RULES.get(rules[pair.case_id], counted_iterations)(record))
        found = {"ours_s": pair.ours_s, "library_s": pair.library_s}
        yield from differing(
            where, f"[{index}]", found, {"ours_s": ours_s, "library_s": library_s}, next_step=_MEASURE_AGAIN
        )


def _check_noise(folder: Path, root: Path, results: Sequence[CaseResult]) -> Iterator[Finding]:
    path = folder / "noise.json"
    stored = _read_json(path)
    if stored is None:
        return
    pairs = twin_pairs(results)
    expected = [asdict(pair) | {"difference": pair.difference} for pair in pairs]
    where, by_id = _below(path, root), operator.itemgetter("case_id")
    yield from differing(where, "noise_budget", stored["noise_budget"], noise_budget(pairs), next_step=STORE_ANEW)
    yield from differing(
        where, "pairs", sorted(stored["pairs"], key=by_id), sorted(expected, key=by_id), next_step=STORE_ANEW
    )


def _check_hashes(folder: Path, root: Path) -> Iterator[Finding]:
    """Nothing where there are no hashes: a campaign that just ended has none yet."""
    if not (folder / SUMS).is_file():
        return
    listed = _read_sums(folder)
    there = {path.relative_to(folder).as_posix(): path for path in _members(folder)}
    for name in sorted({*listed, *there}):
        where = _below(folder / name, root)
        if name not in there:
            yield Finding(where=where, what="the file", got="missing", expected=f"there, as {SUMS} says")
        elif name not in listed:
            yield Finding(
                where=where, what="the file", got=f"not in {SUMS}", expected="listed there", next_step=_HASH_AGAIN
            )
        else:
            digest = _sha256(there[name])
            yield from differing(where, "its SHA-256", digest, listed[name], next_step=_HASH_AGAIN)


def _members(folder: Path) -> list[Path]:
    """What belongs to a set. Raw files and a report that was built there do not."""
    beside = [path for name in ("upstream.json", "noise.json") if (path := folder / name).is_file()]
    return [*case_paths(folder), *beside]


def _read_sums(folder: Path) -> Mapping[str, str]:
    path = folder / SUMS
    if not path.is_file():
        return {}
    pairs = (line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return {name.removeprefix("*"): digest for digest, name in pairs}


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _below(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() or "."
