"""*Hours and cost*: which number of GPUs to take, how many environments fill one, and the time to a reward."""

from collections.abc import Sequence

from reports.verification import formulas
from reports.verification.figures import estimates, rewards
from reports.verification.figures.published import curve_of, is_emulated, scaling_curves, twin_of
from reports.verification.figures.rows import of_pair
from reports.verification.figures.series import Line, lines_of, series_of_kind
from reports.verification.finding import Json
from reports.verification.pages.cost import choice_of_envs, choice_of_ranks
from reports.verification.samples.case_file import StoredCase
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
    for base, *others in (
        curve for cases in series_of_kind(one, "scaling", trained=True) for curve in scaling_curves(cases)
    ):
        twin = twin_of(one, base)
        if row := choice_of_ranks.figures([base, *others], [twin, *others] if twin else None):
            found[f"curve from {base.case_id}"] = row
    return found


# --- time to a reward ---


def _rewards(one: StoredSet) -> dict[str, Json]:
    """Return the time to the most that every round of a curve reached, of each case of it."""
    found: dict[str, Json] = {}
    for cases in series_of_kind(one, "scaling", trained=True):
        curves: dict[object, list[StoredCase]] = {}
        for stored in cases:
            curves.setdefault((*curve_of(stored.case), is_emulated(stored), _more_nodes(stored, cases)), []).append(
                stored
            )
        for curve in curves.values():
            completed = [stored for stored in curve if stored.completed]
            learned = [rewards.curve_of(record) for stored in completed for record in stored.completed]
            reward = rewards.reward_of_all(learned)
            if reward is not None:
                found |= {stored.case_id: _reward(stored, reward) for stored in completed}
    return found


def _more_nodes(stored: StoredCase, cases: Sequence[StoredCase]) -> int | None:
    """Return its number of nodes if as many ranks ran on fewer nodes too: then it has a line of its own."""
    alike = [other for other in cases if curve_of(other.case) == curve_of(stored.case)]
    nodes = [other.case["nnodes"] for other in alike if world_size(other.case) == world_size(stored.case)]
    own = int(stored.case["nnodes"])
    return own if min(nodes) < own else None


def _reward(stored: StoredCase, reward: float) -> Json:
    needed = {record["round"]: rewards.iterations_to(rewards.curve_of(record), reward) for record in stored.completed}
    iterations = [number for number in needed.values() if number is not None]
    times_s = [
        sum(formulas.slowest_s(record)[:number])
        for record in stored.completed
        if (number := needed[record["round"]]) is not None
    ]
    is_known_of_all = len(times_s) == len(needed)
    return {
        "reward": reward,
        "iterations_to_reward": formulas.median_of_known(iterations),
        **of_pair("seconds_to_reward", estimates.median_of(times_s) if is_known_of_all else None),
    }
