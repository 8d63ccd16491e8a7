"""Which figures a version publishes. A new comparison is a line of ``compare``, a new measure one of ``columns``."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Final

from reports.data.columns import RUN_COLUMNS
from reports.figures import published
from reports.figures.columns import COLUMNS
from reports.figures.compare import POOL, Pair, Row, Runs, processes_of
from reports.figures.kinds import Declaration, Selection

# Column of runs -> how the runs of one configuration become one value.
MEASURES: Final[Mapping[str, str]] = {column.column: column.kind for column in COLUMNS.values() if column.kind}
WINDOWS: Final = ("iteration_s", "iteration_95_s", "iteration_50_s")  # a verdict may depend on it
# End of an id -> of its column: the part of a reward's rise, CONVERGED_SHARE if empty; a verdict may depend on it.
MARKS: Final = {"_60": "/0.6", "_70": "/0.7", "_80": "/0.8", "": "", "_95": "/0.95", "_97": "/0.97"}
SERIES: Final = ("set", "series", "library", "workload")  # what one model is of
CLOCKS: Final = ("isaaclab_difference", "library_difference")
FRAMES: Final = "frames_to_reward"
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
    yield from _of_scaled(pairs, runs)
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
        yield from _sooner(pair)


def _of_scaled(pairs: Sequence[Pair], runs: Runs) -> Iterator[Declaration]:
    """Yield the rewards of what trains as shipped on more GPUs, or with more environments on one, by their base."""
    own = [pair for pair in pairs if not pair.of["is_tuned"] and pair.of["workload"] == "train"]
    on_gpus = [pair for pair in own if pair.change.column == "gpus"]
    filled = [pair for pair in own if pair.change.column == "environments_per_gpu" and pair.over["gpus"] == 1]
    of_bases: dict[tuple[str, str], list[Pair]] = {}
    known = {(pair.set_name, pair.over["configuration"]) for pair in on_gpus}
    for pair in (*on_gpus, *(pair for pair in filled if (pair.set_name, pair.of["configuration"]) not in known)):
        of_bases.setdefault((pair.set_name, pair.over["configuration"]), []).append(pair)
    for of_base in of_bases.values():
        yield from _of_rewards(of_base, runs)


def _of_rewards(pairs: Sequence[Pair], runs: Runs) -> Iterator[Declaration]:
    """Yield what more GPUs or environments than those of a base need to a reward: frames, and by their speed the time.

    Runs of only_learning say it of GPUs if the base and a pair have some, and of a filled GPU if it and the base have
    some; else own runs say it of GPUs and of the base, and of a pair without runs of only_learning, beside one that
    has some, how much sooner and nothing else.
    """
    over, base = pairs[0].over, runs.learned(pairs[0].over)
    on_gpus = [pair for pair in pairs if pair.change.column == "gpus"]
    learned = [(pair, row) for pair in pairs if base and (row := runs.learned(pair.of))]
    own = [pair for pair in on_gpus if not base or not runs.learned(pair.of)]
    is_own, pool = bool(own) and own == on_gpus, _pool(base) if base else {}
    target = _selection(over) if is_own else pool
    if is_own or learned:
        yield Declaration(id=_id(over, "reward_mean_to_reach"), kind="reward_to_reach", column="reward_mean", of=target)
    for pair in own:
        yield from _sooner(pair)
    if is_own:
        for row in (over, *(pair.of for pair in own)):
            yield from _to_reward(row, target)
    elif base and learned:
        yield from _learned(over, base, target)
        yield from _predicted(on_gpus, runs, target)
    for pair, row in learned:
        yield from _learned(pair.of, row, pool)
        yield from _sooner_by_frames(pair.of, row, pool, "sooner", {pair.id: 1})
        if pair.change.column == "gpus":
            yield from _checked(pair.of, row)


def _learned(of: Row, learned: Row, target: Selection) -> Iterator[Declaration]:
    """Yield what a configuration needs to a reward, by the runs that say what it learns."""
    yield from _frames(of, learned, target)
    yield _product(of, "time_to_reward_s", {_id(of, FRAMES): 1, _id(of, "frames_per_s"): -1}, unit="s")


def _checked(of: Row, learned: Row) -> Iterator[Declaration]:
    """Yield how far rewards of processes that share a GPU are from those on GPUs of their own, and one such run's."""
    over = _selection(of)
    for name, own in (("differs_on_one_gpu", _pool(learned)), ("differs_again", over)):
        yield Declaration(id=_id(of, name), kind="differs", column="reward_mean", of=own, over=over)


def _frames(of: Row, learned: Row, target: Selection) -> Iterator[Declaration]:
    own, column = _pool(learned), "frames_per_iteration"
    yield Declaration(id=_id(of, FRAMES), kind="to_reward", column=column, of=own, over=target, unit="frames")
    for end, mark in MARKS.items():
        yield Declaration(id=_id(of, f"reached{end}"), kind="reached", column=f"{column}{mark}", of=own, over=target)
    yield Declaration(id=_id(of, "seeds"), kind="seeds", column="seed", of=own, over=target)
    for name, (end, kind) in product(("learned_reward", "learned_success"), SPREAD.items()):
        yield Declaration(id=_id(of, f"{name}{end}"), kind=kind, column=f"{name}/seed", of=own)


def _predicted(pairs: Sequence[Pair], runs: Runs, target: Selection) -> Iterator[Declaration]:
    """Yield how much sooner the reward would come on more GPUs than ran, if a doubling brought what the last did.

    The ratios share their base, so their product varies less than its interval says.
    """
    by_gpus = {pair.of["gpus"]: pair for pair in pairs if pair.of["nodes"] == 1}
    most = max(by_gpus, default=0)
    half = by_gpus.get(most // 2)
    if not most or most % 2 or pairs[0].over["gpus"] != 1 or (half is None and most != 1 + 1):
        return
    over, last = pairs[0].over, by_gpus[most]
    for row in runs.learned_on_more(last.of):
        doublings = math.log2(processes_of(row) / most)
        if not doublings.is_integer():
            continue
        of, steps = {**over, "configuration": f"{over['configuration']}/{processes_of(row)}"}, int(doublings)
        faster = {last.id: steps + 1} | ({half.id: -steps} if half else {})
        yield from _frames(of, row, target)
        yield from _sooner_by_frames(of, row, target, "sooner_predicted", faster)


def _product(of: Row, name: str, factors: Mapping[str, int], unit: str = "") -> Declaration:
    """A product of figures, each to its power."""
    powers = {figure: str(power) for figure, power in factors.items()}
    return Declaration(id=_id(of, name), kind="product", column="", of=powers, unit=unit)


def _sooner_by_frames(
    of: Row, learned: Row, target: Selection, name: str, faster: Mapping[str, int]
) -> Iterator[Declaration]:
    """Yield at every mark how many times fewer frames ``of`` needs, and how much sooner it has them at its speed."""
    for end, mark in MARKS.items():
        fewer, column = _id(of, f"fewer_frames{end}"), f"frames_per_iteration{mark}"
        yield Declaration(id=fewer, kind="sooner", column=column, of=_pool(learned), over=target)
        yield _product(of, f"{name}{end}", {fewer: 1, **faster})


def _sooner(pair: Pair) -> Iterator[Declaration]:
    of, over = _selection(pair.of), _selection(pair.over)
    for end, mark in MARKS.items():
        yield Declaration(id=_id(pair.of, f"sooner{end}"), kind="sooner", column=f"iteration_s{mark}", of=of, over=over)


def _to_reward(row: Row, over: Selection) -> Iterator[Declaration]:
    """Yield what a configuration needs to the reward to reach of ``over``."""
    of = _selection(row)
    kinds = {"time_to_reward_s": ("iteration_s", "s"), FRAMES: ("frames_per_iteration", "frames")}
    for name, (column, unit) in kinds.items():
        yield Declaration(id=_id(row, name), kind="to_reward", column=column, of=of, over=over, unit=unit)


def _pool(row: Row) -> Selection:
    """The runs of all sets: their times mean nothing, so machines may differ, and their seeds do."""
    return {name: str(row[name]) for name in POOL}


def _selection(row: Row) -> Selection:
    return {"set": row["set"], "configuration": row["configuration"]}


def _id(row: Row, name: str) -> str:
    return f"{row['set']}/{row['configuration']}/{name}"
