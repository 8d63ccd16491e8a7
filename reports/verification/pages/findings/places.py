"""The same training in several places with one kind of GPU: how many times the frames of the slowest."""

import math
from collections.abc import Hashable, Sequence

from reports.verification import formulas
from reports.verification.figures.neighbours import neighbours_in
from reports.verification.figures.same_work import work_of
from reports.verification.figures.series import is_as_shipped, with_cold_starts
from reports.verification.finding import Json
from reports.verification.samples.case_file import StoredCase
from reports.verification.samples.stored_version import StoredVersion

type _Round = tuple[StoredCase, Json, int | None]  # with its neighbours


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return training -> its places, then how far apart they are in the nearest and in the furthest."""
    groups: dict[tuple[str, Hashable], dict[str, list[_Round]]] = {}
    for gpus, label, training in _trainings(version):
        key = gpus, work_of(training[0][0].case, minibatch_rule="", cpu_threads=None)
        groups.setdefault(key, {}).setdefault(label, []).extend(training)
    found = {}
    for (gpus, _), by_label in groups.items():
        if row := _places(by_label):
            first = next(iter(by_label.values()))[0][0]
            found[f"{first.case_id} on {gpus}"] = row
    times = [row["times"] for row in found.values()]
    if not found:
        return {}
    perhaps = sum(row["is_perhaps_beside"] for row in found.values())
    said = {"trainings": len(found), "least": min(times), "most": max(times), "perhaps_beside": perhaps}
    return {**found, "every training in several places": said}


def _trainings(version: StoredVersion) -> list[tuple[str, str, list[_Round]]]:
    """Return kind of GPU, label of the host and rounds of each case, without rounds that ran beside others."""
    own = version.own
    neighbours = neighbours_in(version)
    cold = with_cold_starts(stored for one in own for stored in one.of_report)
    found = []
    for one in own:
        for stored in one.of_report:
            beside = {record["round"]: neighbours.of(one, record) for record in stored.completed}
            rounds = [
                (stored, record, beside[record["round"]]) for record in stored.completed if not beside[record["round"]]
            ]
            is_on_one_node = stored.case["nnodes"] == 1 and stored.case["series"] not in cold
            if rounds and is_on_one_node and is_as_shipped(stored):
                gpus = {gpu["name"] for _, record, _ in rounds for gpu in record["environment"].get("gpus", ())}
                label = rounds[0][1]["environment"]["host_label"]
                if gpus and label:
                    found.append((", ".join(sorted(gpus)), label, rounds))
    return found


def _places(by_label: dict[str, list[_Round]]) -> Json | None:
    """A place whose rounds may have had neighbours is kept only where it is quicker than the slowest that had none."""
    first = next(iter(by_label.values()))[0][0].case_id
    by_label = {label: _of_one_case(rounds, first) for label, rounds in by_label.items()}
    fps = {label: _fps(rounds) for label, rounds in by_label.items()}
    unsure = {label for label, rounds in by_label.items() if any(number is None for _, _, number in rounds)}
    limit = min((fps[label] for label in fps.keys() - unsure), default=math.inf)
    kept = {label: value for label, value in fps.items() if label not in unsure or value > limit}
    if len(kept) < 2:  # noqa: PLR2004 - one place has nothing to be compared with
        return None
    slowest, quickest = min(kept, key=kept.__getitem__), max(kept, key=kept.__getitem__)
    return {
        "slowest": slowest,
        "frames_per_s_of_slowest": kept[slowest],
        "quickest": quickest,
        "frames_per_s_of_quickest": kept[quickest],
        "times": kept[quickest] / kept[slowest],
        "places": len(kept),
        "is_perhaps_beside": quickest in unsure,
    }


def _of_one_case(rounds: list[_Round], case_id: str) -> list[_Round]:
    """Return the rounds of the case with most of them; of several that one, or the first that the place measured."""
    ids = [id(one) for one, _, _ in rounds]
    stored = min((one for one, _, _ in rounds), key=lambda one: (-ids.count(id(one)), one.case_id != case_id))
    return [each for each in rounds if each[0] is stored]


def _fps(rounds: Sequence[_Round]) -> float:
    stored = rounds[0][0]
    return stored.frames / formulas.median([one.published_s[record["round"]] for one, record, _ in rounds])
