"""``figures.csv`` of a version, which has every published number, and those of README.md.

What a version publishes is declared here a second time: each figure is a kind, a column, and which runs: ``of``, and
``over`` for what it is divided by. Every row is computed again from raw samples, and none of these is missing.
"""

import csv
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from reports.verification.finding import Place, counted
from reports.verification.hashes import is_version, read_bytes
from reports.verification.kinds import OF_TWO, SERIES, Selected, figure
from reports.verification.runs import WORK, Row, rows_of_set
from reports.verification.stored import StoredSet

FILE: Final = "figures.csv"
COLUMNS: Final = ("id", "kind", "column", "of", "over", "unit", "value", "low", "high", "runs", "status")
TOLERANCE: Final = 1e-6  # relative: 9 digits are stored, and the last of a double differ between processors
NO_SHARE: Final = 1e-12  # what is left of a share that is 0 by differences
MEASURES: Final = {  # column -> kind: how the runs of a configuration become one value
    **dict.fromkeys(("iteration_s", "frames_per_s", "step_frames_per_s", "rollout_frames_per_s"), "mean"),
    **dict.fromkeys(("policy_call_s", "written_s", "bytes_per_frame"), "mean"),
    **dict.fromkeys(("simulate_share", "render_share", "environment_share", "infer_share", "other_share"), "average"),
    **dict.fromkeys(("learn_share", "all_reduce_share", "waiting_share"), "average"),
    **dict.fromkeys(("process_skew", "core_probe_us", "last_reward", "peak_memory_gb", "gpu_memory_gb"), "median"),
    **dict.fromkeys(("gpu_utilisation_percent", "power_w", "joules_per_million_frames"), "median"),
    **dict.fromkeys(("throttled_share", "stolen_share", "others_share", "sampler_core_share"), "median"),
    "slowed_core_looks/core_looks": "share",
}
_UNITS: Final = {  # end of a measure's column -> unit, the first that fits; others are numbers
    "frames_per_s": "frames/s", "_us": "µs", "_s": "s", "_gb": "GB", "_w": "W", "_percent": "%",
    "joules_per_million_frames": "J", "bytes_per_frame": "B", "frames_per_iteration": "frames",
}  # fmt: skip
_OF_A_COLUMN: Final = (
    "mean",
    "average",
    "median",
    "least",
    "most",
    "to_reward",
)  # the kinds with the unit of their column
PRINTED: Final = ("value", "least", "most")  # of a selection that is a number that somebody published
TOTALS: Final = ("set", "machine", "gpu_model", "task", "library")
_SIZES: Final = ("environments", "frames_per_iteration", "minibatch_size", "optimiser_steps")
_SETTINGS: Final = (*_SIZES, "environments_per_gpu", "size", "variant", "is_tuned")
# What two configurations of a pair differ in, what may differ because of it, and the value of the base: ``min`` of
# all, or this one. The workloads that are compared are those of the second field of a row.
CHANGES: Final[Sequence[tuple[str, tuple[str, ...], Any, tuple[str, ...]]]] = (
    ("gpus", (*_SIZES, "environments_per_gpu", "nodes", "mps"), min, ()),
    ("nodes", (), min, ()),
    ("environments_per_gpu", (*_SIZES, "size", "minibatch_rule", "series", "scaling"), min, ()),
    ("library", (*_SIZES, "steps", "minibatch_rule"), "rl_games", ()),
    ("physics", (), "kitless", ()),
    ("is_tuned", (*_SETTINGS, "steps", "iterations"), False, ()),
    ("is_deterministic", ("variant", "is_tuned"), False, ()),
    ("trainings_per_gpu", (*_SETTINGS, "mps"), min, ()),
    ("packages", ("variant", "is_tuned"), min, ()),
    ("workload", ("mps", "series", "gpus"), "train", ("train", "async_pipeline")),
    ("workload", ("series", "iterations"), "collection", ("collection", "collection_ray")),
)
OF_A_PAIR: Final = {  # changed column -> what else is published of a pair
    "gpus": [(f"share_kept{window}", "share_kept", f"iteration{window}_s") for window in ("", "_95", "_50")],
    "is_tuned": [("sooner", "sooner", "reward_mean")],
    "packages": [
        ("start_over_packages", "ratio", "start_s"),
        ("loss_seen", "loss_seen", "iteration_s"),
        ("start_loss_seen", "loss_seen", "start_s"),
    ],
}
_MADE: Final = re.compile(r"<!-- begin: made by.*?-->(.*?)<!-- end -->", re.DOTALL)
_LINK: Final = re.compile(r"\[[^]]*\]\(reports/results/([^)/]+)/([^)/]+)[^)]*\)")
_FIGURE: Final = re.compile(r"(?<![\w.-])(?:\d{1,3}(?:,\d{3})+|\d+\.\d+)(?![\w-]|\.\d)")
MEND_FIRST: Final = "Mend these records first, as the findings of each case file say; then verify again."
_WRITE_AGAIN: Final = "Write the file again with `python -m reports.figures.tables VERSION`."
_MAKE_AGAIN: Final = "Make it again with `python -m reports.site.readme`."


type Selection = tuple[str, Sequence[Row]]  # which runs, as column=value, joined by &; and these runs
type Declaration = tuple[str, str, Selection, Selection]  # kind, column, ``of`` and ``over``
type Key = tuple[str, ...]  # the set and the id of a configuration


def check_figures(place: Place, sets: Sequence[StoredSet]) -> int:
    """Check the file at ``place``; return of how many configurations figures were computed again."""
    path = place.root / place.where
    if not path.is_file():
        return 0
    if rejected := [name for one in sets for name in one.rejected]:
        more = f" and {len(rejected) - 1} more" if len(rejected) > 1 else ""
        got = f"not made (records are rejected in {counted(len(rejected), 'case file')}: {rejected[0]}{more})"
        place.fault("the comparison of its figures with the samples", got, "made", MEND_FIRST)
        return 0
    runs, alone = (
        [
            row
            for one in sets
            for row in rows_of_set([run for run in one.runs if run.is_measured and run.is_copy == is_copy])
        ]
        for is_copy in (False, True)
    )
    with place.as_far_as_possible():
        rows = read_figures(path)
        for name, number in Counter(row["id"] for row in rows).items():
            if number > 1:
                place.fault(f"the figure {name}", f"there {number} times", "there once", _WRITE_AGAIN)
        _check_rows(place, {row["id"]: row for row in rows}, runs, alone)
    return len({(row["set"], row["configuration"]) for row in runs})


def _check_rows(place: Place, rows: Mapping[str, Mapping[str, str]], runs: Sequence[Row], alone: Sequence[Row]) -> None:
    """Compute each declared figure; one without a value is not in the file. Others are computed as they are stated."""
    own = [run for run in runs if not run["is_repeat"]]
    configurations, by_set = _selections(own, ("set", "configuration")), _selections(runs, ("set",))
    pairs = list(_pairs([of_runs[0] for _, of_runs in configurations.values()]))
    compared = {(configurations[key][0], configurations[base][0]) for _, key, base in pairs}
    declarations = dict(_declared(own, configurations, pairs))
    for name in rows.keys() - declarations:
        declarations[name] = _stated(place, rows[name], own, compared)
    for name, (kind, column, (of, of_runs), (over, over_runs)) in declarations.items():
        every = by_set[(of_runs[0]["set"],)][1] if of_runs and of.startswith("set=") else runs
        selected = Selected(column=column, of=of_runs, over=over_runs, every=every, alone=alone)
        units = (unit for end, unit in _UNITS.items() if kind in _OF_A_COLUMN and column.endswith(end))
        declared = {"kind": kind, "column": column, "of": of, "over": over, "unit": next(units, "")}
        expected: dict[str, float | str | None] = {**declared, **figure(kind, selected)}
        if name not in rows and expected["value"] is not None:
            place.fault(f"the figure {name}", "missing", f"there, {expected['value']}", _WRITE_AGAIN)
        for field, value in expected.items() if name in rows else ():
            if not _is_equal(text := rows[name][field], value):
                wanted = "missing" if value in {None, ""} else str(value)
                place.fault(f"{name}.{field}", text or "missing", wanted, _WRITE_AGAIN)


def read_figures(path: Path) -> list[Mapping[str, str]]:
    """Return the rows of the file, each field as its text. Raises ValueError for other columns."""
    lines = csv.DictReader(read_bytes(path).decode().splitlines())
    if tuple(lines.fieldnames or ()) != COLUMNS:
        raise ValueError(f"its columns are {', '.join(lines.fieldnames or ())}, expected {', '.join(COLUMNS)}")
    return list(lines)


def _is_equal(text: str, expected: float | str | None) -> bool:
    if not text or expected is None or isinstance(expected, str):
        return text == (expected or "")
    return math.isclose(float(text), expected, rel_tol=TOLERANCE, abs_tol=NO_SHARE)


def _declared(
    runs: Sequence[Row], configurations: Mapping[Key, Selection], pairs: Sequence[tuple[str, Key, Key]]
) -> Iterator[tuple[str, Declaration]]:
    """Yield the figures that a version must have, each with its id."""
    nothing: Selection = ("", ())
    for name in TOTALS:
        yield f"total/{name}", ("count", name, ("", runs), nothing)
    yield "total/slowed_core_looks", ("share", "slowed_core_looks/core_looks", ("", runs), nothing)
    for key, of in {("total",): ("", runs), **_selections(runs, ("set",))}.items():
        yield f"{key[0]}/iteration_s_in_turns", ("in_turns", "iteration_s", of, nothing)
    for key, of in _selections(runs, SERIES).items():
        yield f"{'/'.join(key)}/core_slope", ("slope", "iteration_s", of, nothing)
    for key, of in configurations.items():
        for column, kind in MEASURES.items():
            yield "/".join((*key, column.partition("/")[0])), (kind, column, of, nothing)
        for start in ("warm", "cold"):
            started = f"{of[0]}&start={start}", [run for run in of[1] if run["start"] == start]
            yield "/".join((*key, f"{start}_start_s")), ("median", "start_s", started, nothing)
    for change, key, base in pairs:
        of, over, name = configurations[key], configurations[base], "/".join(key)
        for end, kind, column in ((f"over_{change}", "ratio", "iteration_s"), *OF_A_PAIR.get(change, ())):
            yield f"{name}/{end}", (kind, column, of, over)
        if change == "is_deterministic":
            yield f"{name}/results", ("count", "result", of, nothing)
            yield f"{'/'.join(base)}/results", ("count", "result", over, nothing)


def _stated(place: Place, row: Mapping[str, str], runs: Sequence[Row], pairs: set[tuple[str, str]]) -> Declaration:
    """Return another figure as its row declares it: its id says of what it is, and two configurations are a pair."""
    name, column, (of, over) = row["id"], row["column"].partition("/")[0], (row["of"], row["over"])
    values = [part.partition("=")[2] for part in of.split("&") if part.partition("=")[0] not in PRINTED]
    is_named = all(value in name for value in values) and (bool(of) or name.startswith("total/"))
    if not is_named or not (over or row["kind"].endswith("slope") or column in name):
        place.fault(f"the figure {name}", f"the {column} of {of}", "what its id says", _WRITE_AGAIN)
    if row["kind"] in OF_TWO and (of, over) not in pairs:
        place.fault(f"the figure {name}", f"over {over}", "over the base of what differs", _WRITE_AGAIN)
    return row["kind"], row["column"], (of, _selected(of, runs)), (over, _selected(over, runs) if over else ())


def _selected(text: str, runs: Sequence[Row]) -> Sequence[Row]:
    """Return the runs that a selection names, or the number that it has in place of runs."""
    selection = dict(part.split("=", 1) for part in text.split("&") if part)
    if selection.keys() >= {*PRINTED}:
        return [selection]
    return [run for run in runs if all(str(run[name]) == value for name, value in selection.items())]


def _selections(runs: Sequence[Row], names: Sequence[str]) -> Mapping[Key, Selection]:
    """Return the runs by their values in some columns."""
    groups = defaultdict[Key, list[Row]](list)
    for run in runs:
        groups[tuple(run[name] for name in names)].append(run)
    return {
        key: ("&".join(f"{name}={value}" for name, value in zip(names, key, strict=True)), group)
        for key, group in groups.items()
    }


def _pairs(configurations: Sequence[Row]) -> Iterator[tuple[str, Key, Key]]:
    """Yield a changed column, a configuration, and the base of all that differ in this and what it entails alone."""
    for column, entails, base_value, among in CHANGES:
        equal = sorted({"set", *WORK} - {column, *entails})
        own = [row for row in configurations if row["device"] == "cuda" and row[column] in (among or {row[column]})]
        for _, rows in _selections(own, equal).values():
            value = min(row[column] for row in rows) if base_value is min else base_value
            bases = [(row["set"], row["configuration"]) for row in rows if row[column] == value]
            others = [(row["set"], row["configuration"]) for row in rows if row[column] != value]
            yield from ((column, other, bases[0]) for other in others if bases)


# --- README.md ---


def check_readme(place: Place, version: Path, sets: Sequence[StoredSet]) -> None:
    """Check what a program made of README.md, if the version is one of ``reports/results`` and has figures.

    All figures before a link to a set are those of one configuration, or sizes of some. What is shown of another
    version there is checked with that one.
    """
    path, resolved = version / FILE, version.resolve()
    readme = resolved.parents[2] / "README.md"
    if resolved.parts[-3:-1] != ("reports", "results") or not path.is_file() or not readme.is_file():
        return
    texts: dict[str, set[str]] = defaultdict(set)  # by set and configuration
    for row in read_figures(path):
        for value in (float(row[name]) for name in ("value", "low", "high") if row[name]):
            # A rate without decimals, a ratio with two, a percentage with one.
            texts[row["id"].rpartition("/")[0]] |= {f"{value:,.0f}", f"{value:.2f}", f"{100 * value:.1f}"}
    by_name, made = {one.folder.name: one for one in sets}, "".join(_MADE.findall(readme.read_text(encoding="utf-8")))
    place, end, number = Place(place.root, "README.md", "", place.findings), 0, 0
    for link in _LINK.finditer(made):
        numbers, (version_name, name) = _FIGURE.findall(made[end : link.start()]), link.groups()
        end, number = link.end(), number + len(numbers)
        if version_name != version.name and is_version(version.parent / version_name):
            continue
        if version_name != version.name or name not in by_name:
            place.fault("a link", f"to {version_name}/{name}", f"to a set of {version.name}", _MAKE_AGAIN)
            continue
        cases = [stored.runs[0].case for stored in by_name[name].cases]
        sizes = {f"{case[size]:,}" for case in cases for size in ("num_envs", "num_envs_global")}
        known = [own | sizes for begin, own in texts.items() if begin.startswith(f"{name}/")]
        if unknown := min(([text for text in numbers if text not in own] for own in known), key=len):
            got, expected = f"with {', '.join(unknown)}", f"with figures of one configuration of {name}"
            place.fault(f"the text before the link to {name}", got, expected, _MAKE_AGAIN)
    if not number:
        expected = "figures, each with a link to its set"
        place.fault("what is made by a program", "without a figure", expected, _MAKE_AGAIN)
