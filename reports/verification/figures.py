"""``figures.csv`` of a version, which has every published number.

What a version publishes is declared here a second time: each figure is a kind, a column, and which runs: ``of``, and
``over`` for what it is divided by. Every row is computed again from raw samples, and none of these is missing. What
others printed is read from ``published.toml``.
"""

import csv
import math
import re
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from reports.verification.finding import Place, counted
from reports.verification.hashes import read_bytes
from reports.verification.kinds import OF_TWO, SERIES, figure, product
from reports.verification.runs import WORK, Row, Run, rows_of

FILE: Final = "figures.csv"
PRINTED: Final = Path(__file__).parents[1] / "figures" / "published.toml"
PRINTED_COLUMNS: Final = {
    "step": "step_frames_per_s", "rollout": "rollout_frames_per_s", "training": "frames_per_s",
    "hours": "trainings_per_hour",
}  # fmt: skip
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
# Kinds with the unit of their column.
_OF_A_COLUMN: Final = ("mean", "average", "median", "least", "most", "to_reward", "product")
TOTALS: Final = ("set", "machine", "gpu_model", "task", "library")
_SIZES: Final = ("environments", "frames_per_iteration", "minibatch_size", "optimiser_steps")
_SETTINGS: Final = (*_SIZES, "environments_per_gpu", "size", "variant", "is_tuned")
# What two configurations of a pair differ in, what may differ because of it, and the value of the base: ``min`` of
# all, or this one; of several bases the first by id, tuned ones last. The last field has the workloads compared.
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
MARKS: Final = {"": "", **{f"_{part}": f"/{part / 100}" for part in (60, 70, 80, 95, 97)}}  # % of a reward's rise
OF_A_PAIR: Final = {  # changed column -> what else is published of a pair
    "gpus": [(f"share_kept{window}", "share_kept", f"iteration{window}_s") for window in ("", "_95", "_50")],
    "is_tuned": [(f"sooner{end}", "sooner", f"iteration_s{mark}") for end, mark in MARKS.items()],
    "packages": [
        ("start_over_packages", "ratio", "start_s"), ("loss_seen", "loss_seen", "iteration_s"),
        ("start_loss_seen", "loss_seen", "start_s"),
    ],
}  # fmt: skip
LEARNING: Final = (  # equal for what learns the same in an iteration, on a GPU of each process or on one
    "task", "library", "physics", "workload", "device", "environments", "environments_per_gpu", "steps",
    "minibatch_size", "optimiser_steps", "is_tuned", "is_deterministic", "trainings_per_gpu", "packages",
)  # fmt: skip
# What runs of learning have equal that are taken together, whatever their set.
POOL: Final = ("configuration", "iterations", "task", "steps", "minibatch_size", "optimiser_steps")
OF_PROCESSES: Final = {"weak": {"environments"}, "strong": {"environments_per_gpu", "optimiser_steps"}}  # which differ
MEND_FIRST: Final = "Mend these records first, as the findings of each case file say; then verify again."
_WRITE_AGAIN: Final = "Write the file again with `python -m reports.figures.tables VERSION`."

type Declaration = tuple[str, str, str, str]  # kind, column, ``of`` and ``over``, which are column=value, joined by &


def check_figures(place: Place, runs: Sequence[Run], rejected: Sequence[str]) -> int:
    """Check the file at ``place``; return of how many configurations figures were computed again."""
    if not place.path.is_file():
        return 0
    if rejected:
        got = f"not made: records are rejected in {', '.join(rejected)}"
        place.fault("the comparison of its figures with the samples", got, "made", MEND_FIRST)
        return 0
    every = rows_of([run for run in runs if run.is_measured])
    own = [row for row in every if not (row["is_repeat"] or row["is_copy"])]
    by_set, own_by_set = _grouped(every, ("set",)), {"": own, **_grouped(own, ("set",))}
    select = cache(lambda text: _select(text, own_by_set))
    stored, declared = read_figures(place), dict(_declared(own))
    with place.at(PRINTED).as_far_as_possible():
        declared |= _printed()
    pairs = {(of, over) for kind, _, of, over in declared.values() if kind in OF_TWO}
    printed = {of for kind, _, of, _ in declared.values() if kind == "published"}
    for name in (name for name in stored if name not in declared):
        declared[name] = _stated(place, stored[name], pairs, printed)
    known: dict[str, Mapping[str, float | str | None]] = {}
    for name, (kind, column, of, over) in sorted(declared.items(), key=lambda item: item[1][0] == "product"):
        of_set, is_product = by_set.get(of.partition("&")[0], every), kind == "product"
        try:
            computed = known[name] = (
                product(of, known, has_unit=name.endswith("_s"))
                if is_product
                else figure(kind, column, select(of), select(over) if over else (), of_set)
            )
        except (ArithmeticError, LookupError, TypeError, ValueError):
            got = f"a {kind} of {column}, of {of!r} over {over!r}"
            place.fault(f"the figure {name}", got, "what can be computed", _WRITE_AGAIN)
            continue
        if name not in stored and computed["value"] is not None:
            place.fault(f"the figure {name}", "missing", f"there, {computed['value']}", _WRITE_AGAIN)
        measured = name if is_product else column.partition("/")[0]
        units = (unit for end, unit in _UNITS.items() if kind in _OF_A_COLUMN and measured.endswith(end))
        fields = {"kind": kind, "column": column, "of": of, "over": over, "unit": next(units, ""), **computed}
        for field, value in fields.items() if name in stored else ():
            if not _is_equal(text := stored[name][field], value):
                wanted = "missing" if value in {None, ""} else str(value)
                place.fault(f"{name}.{field}", text or "missing", wanted, _WRITE_AGAIN)
    return len({(row["set"], row["configuration"]) for row in every if not row["is_copy"]})


def read_figures(place: Place) -> Mapping[str, Mapping[str, str]]:
    """Return the rows of the file by id, each field as its text; what is there twice is noted."""
    rows: dict[str, Mapping[str, str]] = {}
    try:
        lines = list(csv.reader(read_bytes(place.path).decode(errors="replace").splitlines()))
    except csv.Error as error:
        lines = [[f"no table ({error})"]]
    if not lines or tuple(lines[0]) != COLUMNS:
        place.fault("the columns", ", ".join(lines[0] if lines else ()), ", ".join(COLUMNS), _WRITE_AGAIN)
    for number, fields in enumerate(lines[1:], start=2):
        if len(fields) != len(COLUMNS):
            place.fault(f"line {number}", counted(len(fields), "field"), f"{len(COLUMNS)}", _WRITE_AGAIN)
        elif fields[0] in rows:
            place.fault(f"the figure {fields[0]}", "there twice", "there once", _WRITE_AGAIN)
        else:
            rows[fields[0]] = dict(zip(COLUMNS, fields, strict=True))
    return rows


def _is_equal(text: str, expected: float | str | None) -> bool:
    if not text or expected is None or isinstance(expected, str):
        return text == (expected or "")
    try:
        return math.isclose(float(text), expected, rel_tol=TOLERANCE, abs_tol=NO_SHARE)
    except ValueError:
        return False


# --- what is declared ---


def _declared(runs: Sequence[Row]) -> Iterator[tuple[str, Declaration]]:
    """Yield the figures that a version must have if they have a value, each with its id."""
    for name in TOTALS:
        yield f"total/{name}", ("count", name, "", "")
    yield "total/slowed_core_looks", ("share", "slowed_core_looks/core_looks", "", "")
    yield "total/iteration_s_in_turns", ("in_turns", "iteration_s", "", "")
    for of, (run, *_) in _grouped(runs, ("set",)).items():
        yield f"{run['set']}/iteration_s_in_turns", ("in_turns", "iteration_s", of, "")
    for of, (run, *_) in _grouped(runs, SERIES).items():
        yield f"{'/'.join(run[name] for name in SERIES)}/core_slope", ("slope", "iteration_s", of, "")
    configurations = _grouped(runs, ("set", "configuration"))
    names = {of: f"{rows[0]['set']}/{rows[0]['configuration']}" for of, rows in configurations.items()}
    for of, name in names.items():
        for column, kind in MEASURES.items():
            yield f"{name}/{column.partition('/')[0]}", (kind, column, of, "")
        for start in ("warm", "cold"):
            yield f"{name}/{start}_start_s", ("median", "start_s", f"{of}&start={start}", "")
    pairs = list(_pairs([rows[0] for rows in configurations.values()]))
    learned = _learned_by(run for run in runs if run["only_learning"])
    yield from _to_rewards({of: rows[0] for of, rows in configurations.items()}, pairs, learned)
    for change, of, over in pairs:
        for end, kind, column in ((f"over_{change}", "ratio", "iteration_s"), *OF_A_PAIR.get(change, ())):
            yield f"{names[of]}/{end}", (kind, column, of, over)
        for side in (of, over) if change == "is_deterministic" else ():
            yield f"{names[side]}/results", ("count", "result", side, "")


def _pairs(configurations: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    """Yield a changed column, a configuration, and the base of all that differ in this and what it entails alone."""
    configurations = sorted(configurations, key=lambda row: (row["is_tuned"], row["configuration"]))
    for column, entails, base_value, among in CHANGES:
        equal = sorted({"set", *WORK} - {column, *entails})
        with_speed = (row for row in configurations if row["device"] == "cuda" and not row["only_learning"])
        own = [row for row in with_speed if row[column] in (among or {row[column]})]
        for rows in _grouped(own, equal).values():
            value = min(row[column] for row in rows) if base_value is min else base_value
            names = [(row[column], f"set={row['set']}&configuration={row['configuration']}") for row in rows]
            bases = [name for own_value, name in names if own_value == value]
            yield from ((column, name, bases[0]) for own_value, name in names if bases and own_value != value)


def _learned_by(runs: Iterable[Row]) -> Mapping[tuple[Any, ...], Row]:
    """Return a run for each thing that can be learned, of the pool with most seeds that learns it."""

    def precedence(pool: Sequence[Row]) -> tuple[int, int, str]:
        return len({run["seed"] for run in pool}), pool[0]["iterations"], pool[0]["configuration"]

    pools = sorted(_grouped(runs, (*LEARNING, *POOL)).values(), key=precedence)
    return {tuple(run[name] for name in LEARNING): run for run, *_ in pools}


def _to_rewards(
    configurations: Mapping[str, Row], pairs: Sequence[tuple[str, str, str]], learned: Mapping[tuple[Any, ...], Row]
) -> Iterator[tuple[str, Declaration]]:
    """Yield what those that train as shipped need to a reward, which the base of more GPUs or environments sets."""
    own = [(*pair, configurations[pair[1]]) for pair in pairs]
    scaled = [(change, of, over) for change, of, over, row in own if row["workload"] == "train" and not row["is_tuned"]]
    of_gpus = {over for change, _, over in scaled if change == "gpus"}
    of_bases = defaultdict[str, dict[str, str]](dict)
    for change, of, over in scaled:
        is_filled = change == "environments_per_gpu" and configurations[over]["gpus"] == 1 and of not in of_gpus
        if change == "gpus" or is_filled:
            of_bases[over][of] = change
    for over, others in of_bases.items():
        rows = {of: configurations[of] for of in (over, *others)}
        pools = {of: learned.get(tuple(row[name] for name in LEARNING)) for of, row in rows.items()}
        known = {of: row for of, row in pools.items() if row and pools[over]}
        names = {of: f"{row['set']}/{row['configuration']}" for of, row in rows.items()}
        on_gpus = [of for of, change in others.items() if change == "gpus"]
        for end, mark in MARKS.items():
            alone = (of for of in on_gpus if of not in known)
            yield from ((f"{names[of]}/sooner{end}", ("sooner", f"iteration_s{mark}", of, over)) for of in alone)
        target = _pool(known[over]) if over in known else ""
        if on_gpus and known.keys().isdisjoint(on_gpus):
            yield f"{names[over]}/reward_mean_to_reach", ("reward_to_reach", "reward_mean", over, "")
            for of in (over, *on_gpus):
                yield f"{names[of]}/time_to_reward_s", ("to_reward", "iteration_s", of, over)
                yield f"{names[of]}/frames_to_reward", ("to_reward", "frames_per_iteration", of, over)
        elif len(known) > 1:
            yield f"{names[over]}/reward_mean_to_reach", ("reward_to_reach", "reward_mean", target, "")
            yield from _learned(names[over], known[over], target)
            ran = {row["gpus"]: row for of in on_gpus if (row := rows[of])["nodes"] == 1}
            yield from _predicted(rows[over], ran, learned.values(), target)
        for of in known.keys() - {over}:
            yield from _learned(names[of], known[of], target)
            yield from _sooner(names[of], known[of], target, "sooner", f"&{names[of]}/over_{others[of]}=1")
        for of in known.keys() & {*on_gpus}:
            yield f"{names[of]}/differs_on_one_gpu", ("differs", "reward_mean", _pool(known[of]), of)
            yield f"{names[of]}/differs_again", ("differs", "reward_mean", of, of)


def _learned(name: str, own: Row, target: str) -> Iterator[tuple[str, Declaration]]:
    """Yield the frames and the time to a reward of what ran, by runs of learning."""
    yield from _frames(name, own, target)
    yield f"{name}/time_to_reward_s", ("product", "", f"{name}/frames_to_reward=1&{name}/frames_per_s=-1", "")


def _pool(row: Row) -> str:
    return "&".join(f"{name}={row[name]}" for name in POOL)


def _frames(name: str, own: Row, target: str) -> Iterator[tuple[str, Declaration]]:
    """Yield what says how a configuration learns."""
    yield f"{name}/frames_to_reward", ("to_reward", "frames_per_iteration", _pool(own), target)
    for end, mark in MARKS.items():
        yield f"{name}/reached{end}", ("reached", f"frames_per_iteration{mark}", _pool(own), target)
    yield f"{name}/seeds", ("count", "seed", _pool(own), "")
    for column in ("learned_reward", "learned_success"):
        for kind in ("median", "least", "most"):
            yield f"{name}/{column}{'' if kind == 'median' else f'_{kind}'}", (kind, f"{column}/seed", _pool(own), "")


def _sooner(name: str, own: Row, target: str, what: str, faster: str) -> Iterator[tuple[str, Declaration]]:
    """Yield at every mark how many times fewer frames it needs, and how many times as soon at its speed."""
    for end, mark in MARKS.items():
        yield f"{name}/fewer_frames{end}", ("sooner", f"frames_per_iteration{mark}", _pool(own), target)
        yield f"{name}/{what}{end}", ("product", "", f"{name}/fewer_frames{end}=1{faster}", "")


def _predicted(
    base: Row, ran: Mapping[int, Row], learned: Collection[Row], target: str
) -> Iterator[tuple[str, Declaration]]:
    """Yield the same for more GPUs than ran: each doubling brings what the last one did."""
    most = max(ran, default=1)
    if base["gpus"] != 1 or most % 2 or most // 2 not in {1, *ran}:
        return
    names = {gpus: f"{row['set']}/{row['configuration']}" for gpus, row in ran.items()}
    base_name, alike = f"{base['set']}/{base['configuration']}", {*LEARNING} - OF_PROCESSES[base["scaling"]]
    for own in sorted(learned, key=lambda row: int(row["environments"] // row["environments_per_gpu"])):
        steps = math.log2(own["environments"] / own["environments_per_gpu"] / most)
        if steps <= 0 or not steps.is_integer() or any(own[name] != ran[most][name] for name in alike):
            continue
        processes = own["environments"] // own["environments_per_gpu"]
        name, powers = f"{base_name}/{processes}", {most: int(steps) + 1, most // 2: -int(steps)}
        ratios = (f"&{names[gpus]}/over_gpus={power}" for gpus, power in powers.items() if gpus in names)
        yield from _frames(name, own, target)
        yield from _sooner(name, own, target, "sooner_predicted", "".join(ratios))


def _printed() -> Iterator[tuple[str, Declaration]]:
    """Yield each number that others printed, and what is kept of the speed on the fewest GPUs of its table."""
    for table in tomllib.loads(read_bytes(PRINTED).decode())["table"]:
        bases: dict[str, str] = {}
        for row in sorted(table["rows"], key=lambda row: row["gpus"]):
            for word, column in ((word, column) for word, column in PRINTED_COLUMNS.items() if word in row):
                of = f"source={table['source']}&table={table['name']}&gpus={row['gpus']}"
                ends = zip(("value", "least", "most"), _rounded(row[word]), strict=True)
                of += "".join(f"&{name}={number:.9g}" for name, number in ends)
                name = f"{table['source']}/{table['name']}/{row['gpus']}/{column}"
                yield name, ("published", column, of, "")
                if (base := bases.setdefault(column, of)) != of:
                    yield f"{name}_kept", ("published", column, of, base)


def _rounded(text: str) -> tuple[float, float, float]:
    """Return a printed number and the ends of what is rounded to it; of the time of a training its rate."""
    digits, unit = text.rstrip("kMhd"), text.lstrip("0123456789.")
    step = 10.0 if re.fullmatch(r"\d\d0k", text) else 10.0 ** -len(digits.partition(".")[2])  # 950k beside 64k and 1.1M
    factor = {"k": 1e3, "M": 1e6, "d": 24.0}.get(unit, 1.0)
    value, least, most = (factor * (float(digits) + side * step / 2) for side in (0, -1, 1))
    return (1 / value, 1 / most, 1 / least) if unit in {"h", "d"} else (value, least, most)


def _stated(place: Place, row: Mapping[str, str], pairs: Collection[Any], printed: Collection[str]) -> Declaration:
    """Return another figure as its row declares it: its id says of what it is, and what it is over is a base."""
    name, kind, column, (of, over) = row["id"], row["kind"], row["column"].partition("/")[0], (row["of"], row["over"])
    values = [part.partition("=")[2] for part in of.split("&")]
    is_named = all(value in name for value in values) and (bool(of) or name.startswith("total/"))
    is_named = is_named and (over or kind.endswith("slope") or column in name) and not of.startswith("source=")
    is_over_base = over in printed if kind == "published" else kind not in OF_TWO or (of, over) in pairs
    if not is_named or not is_over_base or kind == "product":  # all products are declared
        expected = "what its id says, over the base of what differs"
        place.fault(f"the figure {name}", f"the {column} of {of}, over {over}", expected, _WRITE_AGAIN)
    return kind, row["column"], of, over


def _grouped(runs: Iterable[Row], names: Sequence[str]) -> Mapping[str, Sequence[Row]]:
    """Return the runs by the selection that their values in some columns are."""
    groups = defaultdict[str, list[Row]](list)
    for run in runs:
        groups["&".join(f"{name}={run[name]}" for name in names)].append(run)
    return groups


def _select(text: str, by_set: Mapping[str, Sequence[Row]]) -> Sequence[Row]:
    """Return the runs that a selection names, or the number that it has in place of runs."""
    selection = dict(part.partition("=")[::2] for part in text.split("&") if part)
    if "value" in selection:
        return [selection]
    rows = by_set.get(text.partition("&")[0], by_set[""])
    return [row for row in rows if all(str(row.get(name)) == value for name, value in selection.items())]
