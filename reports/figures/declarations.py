"""Which figures a version publishes. A new comparison is a line of ``compare``, a new measure one of ``columns``."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

from reports.data.columns import RUN_COLUMNS
from reports.data.rewards import CONVERGED_SHARE
from reports.figures import published
from reports.figures.columns import COLUMNS
from reports.figures.compare import Pair, Row, Runs
from reports.figures.kinds import Declaration, Selection

# Column of runs -> how the runs of one configuration become one value.
MEASURES: Final[Mapping[str, str]] = {column.column: column.kind for column in COLUMNS.values() if column.kind}
WINDOWS: Final = ("iteration_s", "iteration_95_s", "iteration_50_s")  # a verdict may depend on it
RISES: Final = (0.6, 0.7, 0.8, CONVERGED_SHARE, 0.95, 0.97)  # parts of a reward's rise: one on rewards may depend on it
SERIES: Final = ("set", "series", "library", "workload")  # what one model is of
CLOCKS: Final = ("isaaclab_difference", "library_difference")
SPREAD: Final[Mapping[str, str]] = {"": "median", "_least": "least", "_most": "most"}  # end of an id -> kind
STARTS: Final = ("warm", "cold")
TOTALS: Final = ("set", "machine", "gpu_model", "task", "library")
_UNITS: Final = {column.name: column.unit for column in RUN_COLUMNS}


def declarations(runs: Runs) -> Iterator[Declaration]:
    """Yield the figures of every configuration and pair, and the totals of the version."""
    for name in TOTALS:
        yield Declaration(id=f"total/{name}", kind="count", column=name, of={})
    yield Declaration(id="total/slowed_core_looks", kind="share", column="slowed_core_looks/core_looks", of={})
    yield Declaration(id="total/iteration_s_in_turns", kind="in_turns", column="iteration_s", of={})
    for name in runs.every.filter("is_alone")["set"].unique(maintain_order=True):
        yield Declaration(id=f"{name}/iteration_s_in_turns", kind="in_turns", column="iteration_s", of={"set": name})
    for column in CLOCKS:
        for end, kind in SPREAD.items():
            yield Declaration(id=f"total/{column}{end}", kind=kind, column=column, of={})
    series: dict[tuple[str, ...], Row] = {}
    for row in runs.configurations:
        yield from _of_configuration(row)
        series.setdefault(tuple(row[name] for name in SERIES), row)
    for key in series:
        yield Declaration(
            id=f"{'/'.join(key)}/core_slope", kind="slope", column="iteration_s", of=dict(zip(SERIES, key, strict=True))
        )
    pairs = list(runs.pairs())
    for pair in pairs:
        yield from _of_pair(pair)
    yield from published.printed_declarations(runs.configurations)
    bases = {(pair.set_name, pair.over["configuration"]): pair.over for pair in pairs if _is_scaled(pair)}
    for row in bases.values():
        of = _selection(row)
        yield Declaration(id=_id(row, "reward_mean_to_reach"), kind="reward_to_reach", column="reward_mean", of=of)
        yield from _to_reward(row, of)
    yield from _of_machines(runs)


def _of_machines(runs: Runs) -> Iterator[Declaration]:
    """Yield how often the cores of each machine were slowed, and GPU models at equal core speed."""
    of: dict[str, dict[str, set[str]]] = {}  # training -> GPU model -> machines
    machines = set()
    for row in runs.completed.iter_rows(named=True):
        is_named = row["machine"] and "&" not in row["machine"]  # which joins the columns of a selection
        if is_named and not row["is_repeat"]:
            machines.add(row["machine"])
            if training := row["one_gpu_training"]:
                of.setdefault(training, {}).setdefault(row["gpu_model"], set()).add(row["machine"])
    for machine in sorted(machines):
        column = "slowed_core_looks/core_looks"
        yield Declaration(id=f"{machine}/slowed_core_looks", kind="share", column=column, of={"machine": machine})
    for training, by_model in of.items():
        yield from _of_training({"one_gpu_training": training}, by_model)


def _of_training(training: Mapping[str, str], by_model: Mapping[str, set[str]]) -> Iterator[Declaration]:
    """Yield the ratios of a training on one GPU between GPU models, and the machines over the first model."""
    (name,), column = training.values(), "iteration_s"
    yield Declaration(id=f"{name}/machines_slope", kind="machines_slope", column=column, of=training)
    for base, other in combinations(sorted(by_model), 2):
        of, over = ({**training, "gpu_model": model} for model in (other, base))
        yield Declaration(id=f"{name}/{other}/over_gpu_model", kind="machines_ratio", column=column, of=of, over=over)
    if len(by_model) > 1:
        over = {**training, "gpu_model": min(by_model)}
        for machine in sorted({machine for machines in by_model.values() for machine in machines}):
            of, of_machine = {**training, "machine": machine}, f"{name}/{machine}/at_equal_core_speed"
            yield Declaration(id=of_machine, kind="machines_ratio", column=column, of=of, over=over)


def _of_configuration(row: Row) -> Iterator[Declaration]:
    of = _selection(row)
    for column, kind in MEASURES.items():
        unit = _UNITS.get(column, "")
        yield Declaration(id=_id(row, column.split("/")[0]), kind=kind, column=column, of=of, unit=unit)
    for end, kind in SPREAD.items():
        column = "isaaclab_difference"
        yield Declaration(id=_id(row, f"{column}{end}"), kind=kind, column=column, of=of)
    for start in STARTS:
        selection = {**of, "start": start}
        yield Declaration(id=_id(row, f"{start}_start_s"), kind="median", column="start_s", of=selection, unit="s")


def _of_pair(pair: Pair) -> Iterator[Declaration]:
    of, over, name = _selection(pair.of), _selection(pair.over), pair.change.column
    yield Declaration(id=pair.id, kind="ratio", column="iteration_s", of=of, over=over)
    if name == "gpus":
        for column in WINDOWS:
            window = column.removeprefix("iteration").removesuffix("_s")
            yield Declaration(
                id=_id(pair.of, f"share_kept{window}"), kind="share_kept", column=column, of=of, over=over
            )
    if name == "packages":
        yield Declaration(id=_id(pair.of, "start_over_packages"), kind="ratio", column="start_s", of=of, over=over)
        for column, start in (("iteration_s", ""), ("start_s", "start_")):
            yield Declaration(id=_id(pair.of, f"{start}loss_seen"), kind="loss_seen", column=column, of=of, over=over)
    if name == "is_deterministic":
        for row, selection in ((pair.of, of), (pair.over, over)):
            yield Declaration(id=_id(row, "results"), kind="count", column="result", of=selection)
    if name == "is_tuned":
        for share in RISES:
            yield _sooner(pair, share)
    if _is_scaled(pair):
        yield _sooner(pair)
        yield from _to_reward(pair.of, over)


def _is_scaled(pair: Pair) -> bool:
    """Whether more GPUs train as shipped, so that the time to a reward says what they bring."""
    return pair.change.column == "gpus" and not pair.of["is_tuned"] and pair.of["workload"] == "train"


def _sooner(pair: Pair, share: float = CONVERGED_SHARE) -> Declaration:
    of, over = _selection(pair.of), _selection(pair.over)
    other = share != CONVERGED_SHARE
    mark, column = (f"_{100 * share:.0f}", f"reward_mean/{share}") if other else ("", "reward_mean")
    return Declaration(id=_id(pair.of, f"sooner{mark}"), kind="sooner", column=column, of=of, over=over)


def _to_reward(row: Row, over: Selection) -> Iterator[Declaration]:
    """Yield what a configuration needs to the reward to reach of ``over``."""
    of = _selection(row)
    for name, column, unit in (
        ("time_to_reward_s", "iteration_s", "s"), ("frames_to_reward", "frames_per_iteration", "frames")
    ):  # fmt: skip
        yield Declaration(id=_id(row, name), kind="to_reward", column=column, of=of, over=over, unit=unit)


def _selection(row: Row) -> Selection:
    return {"set": row["set"], "configuration": row["configuration"]}


def _id(row: Row, name: str) -> str:
    return f"{row['set']}/{row['configuration']}/{name}"
