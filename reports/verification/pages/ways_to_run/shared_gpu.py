"""*Several trainings on one GPU*: frames per second in total and of each training, beside one training alone."""

from collections.abc import Iterator, Sequence

from reports.verification import formulas
from reports.verification.figures.rows import of_median, of_ratio
from reports.verification.figures.same_work import work_of
from reports.verification.finding import Json
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
from reports.verification.samples.round_facts import trainings, world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    found: dict[str, Json] = {}
    gains: dict[int, list[float]] = {}
    for one in version.with_speeds:
        for group in _groups(one):
            for stored in group:
                row = found[f"{one.folder.name}: {stored.case_id}"] = _figures(stored, group[0])
                if stored is not group[0] and row["total_ratio"] is not None:
                    gains.setdefault(trainings(stored.case), []).append(row["total_ratio"])
    return found | {f"{number} trainings": _ranges(number, ratios) for number, ratios in gains.items()}


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
    runs, alone = ([_frames_per_s(record) for record in each.completed] for each in (stored, single))
    totals, totals_alone = ([sum(of_run) for of_run in each] for each in (runs, alone))
    ratio, number = of_ratio("total_ratio", totals, totals_alone), trainings(stored.case)
    value, span = ratio["total_ratio"], ratio["total_ratio_interval"]
    shares = [share for record in stored.completed if (share := _all_at_work(record)) is not None]
    answers = {rank["settings"].get("mps") for record in stored.completed for rank in record["ranks"]}
    return {
        **of_median("total_frames_per_s", totals),
        "slowest_frames_per_s": formulas.median_of_known([*map(min, runs)]),
        "fastest_frames_per_s": formulas.median_of_known([*map(max, runs)]),
        **ratio,
        "each_ratio": None if value is None else value / number,
        "each_ratio_interval": span and [bound / number for bound in span],
        "all_at_work_share": formulas.median_of_known(shares),
        "mps": answers.pop() if answers in ({True}, {False}) else None,
    }


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
