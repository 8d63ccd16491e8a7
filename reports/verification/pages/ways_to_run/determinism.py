"""*Deterministic settings*: what they cost beside the case as shipped, and whether runs of one seed are equal."""

from collections.abc import Iterator, Sequence
from typing import Final

from reports.verification.figures.rewards import seed_of
from reports.verification.figures.rows import of_median, of_ratio
from reports.verification.figures.same_work import work_of
from reports.verification.finding import Json
from reports.verification.samples.case_file import TWIN_SUFFIX, StoredCase
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

WAYS: Final = ("as_shipped", "deterministic")


def figures(version: StoredVersion) -> dict[str, Json]:
    found = {
        f"{one.folder.name}: {deterministic.case_id}": _figures(shipped, deterministic)
        for one in version.with_speeds
        for shipped, deterministic in _pairs(one)
    }
    return {**found, "all": _over_all([*found.values()])} if found else {}


def _pairs(one: StoredSet) -> Iterator[tuple[StoredCase, StoredCase]]:
    cases = [stored for stored in one.in_order if not stored.case_id.endswith(TWIN_SUFFIX)]
    shipped = {_key(stored): stored for stored in cases if not stored.case.get("deterministic")}
    for stored in cases:
        if stored.case.get("deterministic") and _key(stored) in shipped:
            yield shipped[_key(stored)], stored


def _key(stored: StoredCase) -> tuple[object, ...]:
    return stored.case["series"], work_of(stored.case, deterministic=False, division="closed")


def _figures(shipped: StoredCase, deterministic: StoredCase) -> Json:
    shipped_s, deterministic_s = [*shipped.published_s.values()], [*deterministic.published_s.values()]
    return {
        "compared_with": shipped.case_id,
        **of_median("as_shipped_s", shipped_s),
        **of_median("deterministic_s", deterministic_s),
        **of_ratio("ratio", deterministic_s, shipped_s),
        **_repeats("as_shipped", shipped),
        **_repeats("deterministic", deterministic),
    }


def _repeats(name: str, stored: StoredCase) -> Json:
    """Compare the runs of the seed and the GPUs that most runs have, by their parameters and their rewards."""
    alike: dict[object, list[Json]] = {}
    for record in stored.completed:
        if all(rank["parameters_sha256"] for rank in record["ranks"]):
            gpus = tuple(rank["settings"].get("gpu_name") for rank in record["ranks"])
            alike.setdefault((seed_of(record), gpus), []).append(record)
    runs = max(alike.values(), key=len, default=[])
    is_known = len(runs) > 1
    parameters = {tuple(rank["parameters_sha256"] for rank in record["ranks"]) for record in runs}
    return {
        f"{name}_runs_of_one_seed": len(runs) if is_known else None,
        f"{name}_outcomes": len(parameters) if is_known else None,
        f"{name}_rewards_differ_from_iteration": _first_difference(runs) if is_known else None,
    }


def _first_difference(runs: Sequence[Json]) -> int | None:
    """Return the first iteration in which a rank of a run has another reward than in the first run, or none."""
    columns = [[rank["samples"].get("reward_mean", []) for rank in record["ranks"]] for record in runs]
    longest = max(len(rewards) for of_run in columns for rewards in of_run)

    def at(iteration: int, of_run: list[list[float | None]]) -> list[list[float | None]]:
        return [rewards[iteration : iteration + 1] for rewards in of_run]

    different = (i for i in range(longest) if any(at(i, of_run) != at(i, columns[0]) for of_run in columns))
    return next(different, None)


def _over_all(found: Sequence[Json]) -> Json:
    ratios = [pair["ratio"] for pair in found if pair["ratio"] is not None]
    counts: Json = {}
    for way in WAYS:
        compared = [pair for pair in found if pair[f"{way}_runs_of_one_seed"] is not None]
        equal = [
            pair
            for pair in compared
            if pair[f"{way}_outcomes"] == 1 and pair[f"{way}_rewards_differ_from_iteration"] is None
        ]
        counts |= {f"compared_cases_{way}": len(compared), f"equal_cases_{way}": len(equal)}
    return {"least_ratio": min(ratios, default=None), "most_ratio": max(ratios, default=None), **counts}
