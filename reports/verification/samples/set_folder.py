"""One set's folder: every case, what was made of several of them, the plan, and the hashes of all files."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from reports.verification import formulas
from reports.verification.finding import OR_LIST, Finding, Json, as_far_as_possible, counted, differing
from reports.verification.samples import across_rounds
from reports.verification.samples.case_file import (
    ALONE,
    ALONE_SUFFIX,
    CASES,
    TWIN_SUFFIX,
    TWINS,
    StoredCase,
    read_case,
)
from reports.verification.samples.shape import json_files, read_json

PLAN: Final = "plan.json"
_TAKE_ANEW: Final = "Take the file anew from the campaign's folder."
_ASKED: Final = "as many rounds as were asked for"
# How a sentence on why a case ended states its number of rounds.
_ROUNDS: Final = re.compile(r"(?:the budget of |all of its )?(\d+) rounds? (?:were|had ended|have ended|is spent)")
_BEFORE: Final = {"before its second round": 1, "before its third round": 2}
_OF_SET: Final = re.compile(r"after (\d+) of \d+ rounds")


@dataclass(frozen=True, kw_only=True)
class StoredSet:
    """``name`` is the folder's below what is verified; findings are those of its files and of its rounds together.

    ``rejected`` are the case files whose records are too wrong for figures.
    """

    name: str
    folder: Path
    cases: tuple[StoredCase, ...]
    findings: tuple[Finding, ...]
    has_plan: bool
    rejected: tuple[str, ...] = ()

    @property
    def of_report(self) -> list[StoredCase]:
        """The cases that are published: no twins."""
        return [stored for stored in self.cases if f"/{stored.where}".endswith(f"/{CASES}/{stored.case_id}.json")]

    @property
    def in_order(self) -> list[StoredCase]:
        """The same by their ids, as pages have them."""
        return sorted(self.of_report, key=lambda stored: stored.case_id)

    @property
    def without_copies(self) -> list[StoredCase]:
        """All cases but the copies that ran alone of cases in turns."""
        return [stored for stored in self.cases if not stored.case_id.endswith(ALONE_SUFFIX)]

    @property
    def has_speeds(self) -> bool:
        """Whether a run completed on a GPU; no speed of a set without one is published."""
        return any(stored.case["device"] == "cuda" and stored.times_s for stored in self.of_report)

    @property
    def runs(self) -> list[across_rounds.Run]:
        return across_rounds.runs_of(self.folder.name, self.cases)


def case_paths(folder: Path) -> list[Path]:
    return sorted(path for name in (CASES, TWINS, ALONE) for path in json_files(folder / name))


def read_set(folder: Path, *, root: Path) -> StoredSet:
    """Read and check all of a set but its hashes; paths are relative to ``root``."""
    where = folder.relative_to(root).as_posix()
    paths = [path.relative_to(root).as_posix() for path in case_paths(folder)]
    read = [read_case(root / path, path) for path in paths]
    cases = [stored for stored, _ in read if stored is not None]
    findings = [finding for _, found in read for finding in found]
    if not read:
        step = "Name a folder that `nox -s bench` wrote."
        expected = f"{CASES}/<series>/<case>.json"
        findings.append(
            Finding(where=where, what="the folder", got="without a case", expected=expected, next_step=step)
        )
    beside: dict[str, Callable[[str, Any, Sequence[StoredCase]], Iterator[Finding]]] = {
        "upstream.json": _check_pairs,
        PLAN: _check_plan,
    }
    for name, check in beside.items():
        path = folder / name
        if path.is_file():
            at = path.relative_to(root).as_posix()
            findings += as_far_as_possible(at, _checked(at, path, check, cases))
    runs = across_rounds.runs_of(folder.name, cases)
    for together in (
        _check_twice(where, cases),
        _check_ends(where, cases),
        across_rounds.check_one_work(where, cases),
        across_rounds.check_overlaps(where, runs, between_sets=False),
    ):
        findings += as_far_as_possible(where, together)
    return StoredSet(
        name=where,
        folder=folder,
        cases=tuple(cases),
        findings=tuple(findings),
        has_plan=(folder / PLAN).is_file(),
        rejected=tuple(
            path for path, (stored, _) in zip(paths, read, strict=True) if stored is None or stored.is_rejected
        ),
    )


def _checked(
    where: str,
    path: Path,
    check: Callable[[str, Any, Sequence[StoredCase]], Iterator[Finding]],
    cases: Sequence[StoredCase],
) -> Iterator[Finding]:
    try:
        yield from check(where, read_json(path), cases)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        got = f"not valid (the file is not readable: {type(error).__name__}: {error})"
        yield Finding(where=where, what="the file", got=got, expected="as `bench` wrote it", next_step=_TAKE_ANEW)


def _check_pairs(where: str, stored: Any, cases: Sequence[StoredCase]) -> Iterator[Finding]:
    """Check our side of every pair, and the library's; upstream's own time was measured elsewhere."""
    records = {(one.case_id, record["round"]): (one, record) for one in cases for record in one.completed}
    for index, pair in enumerate(stored):
        place = (pair["configuration_id"], pair["run"])
        if place not in records or place[1] not in records[place][0].times_s:
            what = f"[{index}]: round {place[1]} of {place[0]}"
            got = "without a stored round"
            yield Finding(where=where, what=what, got=got, expected="a completed one", next_step=_TAKE_ANEW)
            continue
        one, record = records[place]
        every, starts = formulas.counted_iterations(record), formulas.starts_of_turns(record)
        counted_ones = [iteration for iteration in every if iteration not in starts] or every  # by the library's clock
        samples = record["ranks"][0]["samples"]
        expected = {
            "ours_s": formulas.median([samples["iteration_time_s"][iteration] for iteration in counted_ones]),
            "library_s": _library_s(one, samples, counted_ones),
        }
        found = {name: pair[name] for name in expected}
        if pair.get("theirs_iterations_s") is not None:  # else of iterations that were chosen by another rule
            yield from differing(where, f"[{index}]", found, expected, next_step=_TAKE_ANEW)
        if not 0 < pair["theirs_s"] <= record["wall_time_s"]:
            got, wanted = f"{pair['theirs_s']} s", "a time above 0"
            yield Finding(where=where, what=f"[{index}].theirs_s", got=got, expected=wanted, next_step=_TAKE_ANEW)


def _library_s(stored: StoredCase, samples: Json, iterations: Sequence[int]) -> float | None:
    if stored.case["rl_library"] == "rsl_rl":
        parts = [samples.get(f"rsl_rl.{name}_time_s", []) for name in ("collection", "learning")]
        times_s = [parts[0][i] + parts[1][i] for i in iterations] if all(parts) else []
    else:
        rates = samples.get("rl_games.total_fps", [])
        times_s = [stored.frames / rates[i] for i in iterations] if rates else []
    return formulas.median(times_s) if times_s else None


# --- completeness ---


def _check_plan(where: str, plan: Any, cases: Sequence[StoredCase]) -> Iterator[Finding]:
    """Check cases and rounds against ``{"configurations": {id: runs}, "missing": {id: why}}``."""
    stored = {one.case_id: one for one in cases}
    missing = plan.get("missing", {})
    for case_id, rounds in sorted(plan["configurations"].items()):
        one = stored.get(case_id)
        if one is None and not missing.get(case_id):
            yield Finding(where=where, what=case_id, got="not stored", expected="stored, or under `missing` with why")
        elif one and len(one.rounds) < rounds and not missing.get(case_id) and one.ended_because in {None, _ASKED}:
            got, expected = counted(len(one.rounds), "round"), f"{rounds}, or why there are fewer"
            yield Finding(where=where, what=f"rounds of {case_id}", got=got, expected=expected)
    for case_id in sorted(stored.keys() - plan["configurations"].keys()):
        yield Finding(where=where, what=case_id, got="stored", expected="not: the plan does not have it")


def check_asked(one: StoredSet) -> Iterator[Finding]:
    """Check that all cases of a published set with as many rounds as were asked for have the same number of them."""
    asked = {len(stored.rounds) for stored in one.cases if stored.ended_because == _ASKED}
    if len(asked) > 1:
        what, got = f"rounds of cases with {_ASKED!r}", " and ".join(map(str, sorted(asked)))
        yield Finding(where=one.name, what=what, got=got, expected="one number", next_step=OR_LIST)


def _check_twice(where: str, cases: Sequence[StoredCase]) -> Iterator[Finding]:
    ids = [stored.case_id for stored in cases]
    for case_id in sorted({case_id for case_id in ids if ids.count(case_id) > 1}):
        yield Finding(where=where, what=f"the case {case_id}", got="there twice", expected="one file")
    for case_id in sorted({*ids}):
        if case_id.endswith(TWIN_SUFFIX) and case_id.removesuffix(TWIN_SUFFIX) not in ids:
            yield Finding(where=where, what=f"the case that {case_id} repeats", got="missing", expected="stored too")


def _check_ends(where: str, cases: Sequence[StoredCase]) -> Iterator[Finding]:
    """Check that every case says why no further round ran, and that its rounds are as many as that says."""
    silent = [one for one in cases if not one.ended_because and any(r["outcome"] != "skipped" for r in one.rounds)]
    if silent:
        got = f"missing in {len(silent)} of {counted(len(cases), 'case')}"
        what, expected = "the reason why no further round ran", "given in each (ended_because)"
        yield Finding(where=where, what=what, got=got, expected=expected, next_step=OR_LIST)
    total = sum(len(one.rounds) for one in cases)
    for one in cases:
        said, why = None, one.ended_because or ""
        if match := _OF_SET.search(why):
            yield from differing(one.where, "rounds of the set, by ended_because", total, int(match[1]))
        if match := _ROUNDS.match(why):
            said = int(match[1])
        said = next((number for words, number in _BEFORE.items() if words in why), said)
        if said is not None:
            yield from differing(one.where, "rounds of the case, by ended_because", len(one.rounds), said)
