"""*Several trainings on one GPU*: frames per second in total and of each training, beside one training alone."""

from collections.abc import Iterator, Sequence
from itertools import product

from reports.verification import formulas
from reports.verification.figures.rows import of_median, of_ratio
from reports.verification.figures.same_work import work_of
from reports.verification.finding import Json
from reports.verification.pages.hardware.counted_machines import key_of, records_of
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
from reports.verification.samples.round_facts import trainings, world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    every = [(one, group) for one in version.with_speeds for group in _groups(one)]
    found = {
        f"{one.folder.name}: {stored.case_id}": _figures(stored, group[0]) for one, group in every for stored in group
    }
    gains: dict[int, list[float]] = {}
    for one, group in [each for each in every if _mps(each[1]) is not True] or every:
        for stored in group[1:]:
            if (ratio := found[f"{one.folder.name}: {stored.case_id}"]["total_ratio"]) is not None:
                gains.setdefault(trainings(stored.case), []).append(ratio)
    over_all = {f"{number} trainings": _ranges(number, ratios) for number, ratios in gains.items()}
    return found | over_all | _through_mps(version, every)


def _through_mps(version: StoredVersion, every: Sequence[tuple[StoredSet, list[StoredCase]]]) -> dict[str, Json]:
    """Compare each case through MPS with the same in another set of its machine without it."""
    found: dict[str, Json] = {}
    ratios: dict[int, list[float]] = {}
    for (one, ours), (other, theirs) in product(every, every):
        if (_mps(ours), _mps(theirs)) != (True, False) or _key(ours[0].case) != _key(theirs[0].case):
            continue
        if len({key_of(version, each, record) for each in (one, other) for record in records_of(each)}) > 1:
            continue
        for stored, beside in product(ours, theirs):
            if (number := trainings(stored.case)) == trainings(beside.case):
                row = of_ratio("over_without_mps", _totals(stored), _totals(beside))
                found[f"{one.folder.name}: {stored.case_id}, compared with {other.folder.name}"] = row
                if row["over_without_mps"] is not None:
                    ratios.setdefault(number, []).append(row["over_without_mps"])
    over_all = {
        f"{number} through MPS": {"over_without_mps_range": [min(each), max(each)]} for number, each in ratios.items()
    }
    return found | over_all


def _mps(stored: Sequence[StoredCase]) -> bool | None:
    """Whether all trainings of the cases shared the GPU through MPS; None: unknown, or some did."""
    records = [record for each in stored for record in each.completed]
    answers = {rank["settings"].get("mps") for record in records for rank in record["ranks"]}
    return answers.pop() if answers in ({True}, {False}) else None


def _ranges(number: int, ratios: Sequence[float]) -> Json:
    total = [min(ratios), max(ratios)]
    return {"total_ratio_range": total, "each_ratio_range": [ratio / number for ratio in total]}


def _groups(one: StoredSet) -> Iterator[list[StoredCase]]:
    """Yield every case of one training with those that train several of the same, by their number."""
    alike: dict[object, list[StoredCase]] = {}
    for stored in sorted(one.of_report, key=lambda each: (trainings(each.case), each.case_id)):
        if not stored.case_id.endswith(TWIN_SUFFIX):
            alike.setdefault(_key(stored.case), []).append(stored)
    yield from (group for group in alike.values() if len(group) > 1 and trainings(group[0].case) == 1)


def _key(case: Json) -> tuple[object, ...]:
    of_one = case["num_envs"] * world_size(case)
    return case["series"], work_of(case, trainings_per_gpu=1, num_envs_global=of_one, division="closed")


def _figures(stored: StoredCase, single: StoredCase) -> Json:
    runs = [_frames_per_s(record) for record in stored.completed]
    totals = _totals(stored)
    ratio, number = of_ratio("total_ratio", totals, _totals(single)), trainings(stored.case)
    value, span = ratio["total_ratio"], ratio["total_ratio_interval"]
    shares = [share for record in stored.completed if (share := _all_at_work(record)) is not None]
    return {
        **of_median("total_frames_per_s", totals),
        "slowest_frames_per_s": formulas.median_of_known([*map(min, runs)]),
        "fastest_frames_per_s": formulas.median_of_known([*map(max, runs)]),
        **ratio,
        "each_ratio": None if value is None else value / number,
        "each_ratio_interval": span and [bound / number for bound in span],
        "all_at_work_share": formulas.median_of_known(shares),
        "mps": _mps([stored]),
    }


def _totals(stored: StoredCase) -> list[float]:
    """Return the frames per second of all trainings of each run."""
    return [sum(_frames_per_s(record)) for record in stored.completed]


def _frames_per_s(record: Json) -> list[float]:
    """Return the frames of each training over its own median time."""
    frames = record["case"]["num_envs"] * record["case"]["num_steps_per_env"]
    counted = formulas.counted_iterations(record, formulas.MSER_RULE)
    columns = [rank["samples"]["iteration_time_s"] for rank in record["ranks"]]
    return [frames / formulas.median([times_s[i] for i in counted]) for times_s in columns]


def _all_at_work(record: Json) -> float | None:
    """Return the share of the time in turns in which all trainings ran: each turn waits for the slowest of them."""
    turns: dict[float, list[int]] = {}
    for iteration, number in enumerate(record["ranks"][0]["samples"].get("turn", [])):
        if number is not None:
            turns.setdefault(number, []).append(iteration)
    spans_s = [[_span_s(rank["samples"], own[0], own[-1]) for rank in record["ranks"]] for own in turns.values()]
    return sum(map(min, spans_s)) / sum(map(max, spans_s)) if spans_s else None


def _span_s(samples: Json, first: int, last: int) -> float:
    return float(samples["start_s"][last] + samples["iteration_time_s"][last] - samples["start_s"][first])
