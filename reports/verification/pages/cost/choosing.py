"""*Hours and cost*: which number of GPUs to take, how many environments fill one, and the time to a reward."""

from collections.abc import Sequence

from reports.verification import formulas
from reports.verification.figures import estimates
from reports.verification.figures.published import scaling_curves, twin_of
from reports.verification.figures.rows import of_pair
from reports.verification.figures.series import Line, lines_of, series_of_kind
from reports.verification.finding import Json
from reports.verification.pages.cost import choice_of_envs, choice_of_ranks
from reports.verification.pages.cost.times_to_reward import Reached, times_to_reward
from reports.verification.samples.round_facts import world_size
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion


def figures(version: StoredVersion) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for one in version.with_speeds:
        rows = {**_curves(one), **choice_of_envs.figures(one), **_rewards(one)}
        found |= {f"{one.folder.name}: {of}": row for of, row in rows.items()}
    lines = [line for one in version.with_speeds for line in lines_of(one)]
    card = choice_of_envs.of_card(version)
    return {**found, **({"all": _all(lines)} if lines else {}), **({"card": card} if card else {})}


def _all(lines: Sequence[Line]) -> Json:
    hours = [[choice_of_ranks.gpu_s_per_frame(point) for point in line.points] for line in lines]
    speeds = [[line.speedup(point)[0] for point in line.points] for line in lines]
    return {
        "trainings": len(lines),
        "cheapest_on_one_gpu": sum(min(each) == each[0] for each in hours),
        "soonest_on_most_gpus": sum(max(each) == each[-1] > max(each[:-1]) for each in speeds),
    }


def _curves(one: StoredSet) -> dict[str, Json]:
    found = {}
    trained = series_of_kind(one, "scaling", trained=True)
    for base, *others in (curve for cases in trained for curve in scaling_curves(cases)):
        twin = twin_of(one, base)
        if row := choice_of_ranks.figures([base, *others], [twin, *others] if twin else None):
            found[f"curve from {base.case_id}"] = row
    return found


# --- time to a reward ---


def _rewards(one: StoredSet) -> dict[str, Json]:
    """Return the time to the most that every round of a curve reached, of each case of it."""
    every = [times_to_reward(cases) for cases in series_of_kind(one, "scaling", trained=True)]
    ranks = {stored.case_id: world_size(stored.case) for stored in one.of_report}
    return {case_id: _reward(reached, ranks[case_id]) for found in every for case_id, reached in found.items()}


def _reward(reached: Reached, ranks: int) -> Json:
    times_s = [time_s for time_s in reached.times_s if time_s is not None]
    known = estimates.median_of(times_s) if len(times_s) == len(reached.times_s) else None
    return {
        "reward": reached.reward,
        "iterations_to_reward": formulas.median_of_known(reached.iterations),
        **of_pair("seconds_to_reward", known),
        "rank_seconds_to_reward": known and known[0] * ranks,
    }
