"""``figures.json`` of a version and ``configurations.csv`` of its pages, against the figures computed again."""

import csv
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from reports.verification.figures.published import VERDICTS, compared_with, figures_of
from reports.verification.finding import Finding, Json, as_far_as_possible, differing, not_compared
from reports.verification.hashes import MANIFEST, is_version
from reports.verification.regular_file import read_bytes
from reports.verification.samples.run import world_size
from reports.verification.samples.shape import read_json
from reports.verification.samples.stored import StoredCase, StoredSet

FIGURES: Final = "figures.json"
CSV: Final = "configurations.csv"
_BUILD_AGAIN: Final = (
    "Write the file again with `python -m reports.sets.figures_file VERSION`, or build the pages again."
)
_OF_CASE: Final = (
    "series", "scaling", "task", "rl_library", "stack", "device", "minibatch_rule", "num_envs", "num_envs_global",
)  # fmt: skip
_COLUMNS: Final = {  # of configurations.csv -> of figures.json
    "runs_completed": "runs",
    "iteration_time_s": "seconds_per_iteration",
    "total_fps": "frames_per_s",
    "speedup": "speedup",
    "scaling_efficiency": "efficiency",
}

type Expected = Callable[[], Mapping[str, Json]]  # folder of a set -> its figures


def check_figures(version: Path, sets: Sequence[StoredSet], *, root: Path) -> tuple[int, list[Finding]]:
    """Check the files of figures in a folder of sets; return how many cases they have, and what differs."""
    files = (FIGURES, _check_json), (CSV, _check_csv)
    there = [(version / name, check) for name, check in files if (version / name).is_file()]

    @cache
    def expected() -> Mapping[str, Json]:
        return {_name(one, version): figures_of(one) for one in sets}

    rejected = [name for one in sets for name in one.rejected]
    findings: list[Finding] = []
    for path, check in there:
        where = path.relative_to(root).as_posix()
        findings += not_compared(where, rejected) or as_far_as_possible(where, check(path, where, expected, sets))
    return sum(len(one.of_report) for one in sets) if there else 0, findings


def _name(one: StoredSet, version: Path) -> str:
    return one.folder.relative_to(version).as_posix()


def _check_json(path: Path, where: str, expected: Expected, _: Sequence[StoredSet]) -> Iterator[Finding]:
    stored = read_json(path)["sets"]
    yield from differing(where, "the list of sets", sorted(stored), sorted(expected()), next_step=_BUILD_AGAIN)
    for name, wanted in expected().items():
        found = stored.get(name, {"configurations": {}})
        ids = (sorted(found["configurations"]), sorted(wanted["configurations"]))
        yield from differing(where, f"{name}: the list of configurations", *ids, next_step=_BUILD_AGAIN)
        for case_id in sorted(found["configurations"].keys() & wanted["configurations"].keys()):
            row, figures = dict(found["configurations"][case_id]), dict(wanted["configurations"][case_id])
            if row["verdict"] not in (None, *VERDICTS):
                what, words = f"{case_id}.verdict", " or ".join(VERDICTS)
                yield Finding(where=where, what=what, got=row["verdict"], expected=words, next_step=_BUILD_AGAIN)
            yield from differing(where, f"{name}: {case_id}", row, figures, next_step=_BUILD_AGAIN)


# --- the table of all cases ---


def _check_csv(path: Path, where: str, expected: Expected, sets: Sequence[StoredSet]) -> Iterator[Finding]:
    """Check every column of every case; whose a set is cannot be known without ``report.toml``, as in a download."""
    lines = list(csv.DictReader(read_bytes(path).decode().splitlines()))
    rows = {(line["set"], line["configuration"]): line for line in lines}
    cases = {(_name(one, path.parent), stored.case_id): (one, stored) for one in sets for stored in one.of_report}
    yield from differing(where, "the list of its cases", sorted(rows), sorted(cases), next_step=_BUILD_AGAIN)
    whose = _contributors_of(path.parent) if is_version(path.parent) else None
    for place in sorted(rows.keys() & cases.keys()):
        (name, case_id), (one, stored) = place, cases[place]
        wanted = _line(stored, one.of_report, expected()[name]["configurations"][case_id])
        wanted |= {"set": name, "contributed_by": rows[place].get("contributed_by") or None}
        wanted |= {"contributed_by": whose.get(name)} if whose is not None else {}
        found = {column: _read(text, wanted.get(column)) for column, text in rows[place].items()}
        yield from differing(where, f"{name}: {case_id}", found, wanted, next_step=_BUILD_AGAIN)


def _contributors_of(version: Path) -> dict[str, str]:
    """Return who measured a set, of those that ``report.toml`` calls contributed."""
    entries = tomllib.loads(read_bytes(version / MANIFEST).decode()).get("set", [])
    return {entry["folder"]: entry["contributed_by"] for entry in entries if "contributed_by" in entry}


def _line(stored: StoredCase, cases: Sequence[StoredCase], figures: Json) -> Json:
    case, base = stored.case, compared_with(stored, cases)
    ideal = world_size(case) / world_size(base.case) if base else None
    (low_s, high_s), (least, most) = (figures[name] or (None, None) for name in ("interval_s", "efficiency_interval"))
    crossed = dict.fromkeys(_crossed(record["transport"]) for record in stored.completed if record["transport"])
    return {
        "configuration": stored.case_id,
        **{name: case[name] for name in _OF_CASE},
        "topology": f"{case['nnodes']}x{case['nproc_per_node']}",
        "world_size": world_size(case),
        "runs": len(stored.rounds),
        **{column: figures[name] for column, name in _COLUMNS.items()},
        "iteration_time_low_s": low_s,
        "iteration_time_high_s": high_s,
        "baseline_world_size": world_size(base.case) if base else None,
        "ideal_speedup": ideal if figures["baseline"] else None,
        "scaling_efficiency_low": least,
        "scaling_efficiency_high": most,
        "interconnect": ", ".join(filter(None, crossed)) or None,
        **figures["measured"],
    }


def _crossed(transport: Json) -> str:
    """Return what the data of a round crossed between its nodes, or within its only one; empty if it is not known."""
    kinds = transport["between_nodes"] or transport["within_node"] or ()
    words = " and ".join(kinds).replace("_", " ")
    if transport["emulated"]:
        return f"emulated ({words})" if words else "emulated"
    return words


def _read(text: str, wanted: object) -> float | str | None:
    """Return a field as a number where one should stand there, or nothing, and the field is a number."""
    if isinstance(wanted, str) or not text:
        return text or None
    try:
        return float(text)
    except ValueError:
        return text
