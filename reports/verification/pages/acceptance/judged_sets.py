"""Of each set how many cases are slow, within or fast, and which part of a slow machine is slow."""

from collections.abc import Mapping, Sequence
from typing import Final

from reports.verification.figures.neighbours import neighbours_in
from reports.verification.finding import Json
from reports.verification.pages.acceptance.machines import (
    Machine,
    Round,
    machines_of,
    measured_on_gpus,
    rounds_of,
)
from reports.verification.pages.acceptance.parts import OF_AN_ITERATION, PARTS, values_of
from reports.verification.pages.acceptance.placing import Placed, placed
from reports.verification.samples.round_facts import gpu_model
from reports.verification.samples.set_folder import StoredSet
from reports.verification.samples.stored_version import StoredVersion

HALF: Final = 0.5

type Cases = dict[str, tuple[Placed, Mapping[str, Placed]]]  # case id -> its time, and its parts by name


def figures(version: StoredVersion) -> dict[str, Json]:
    """Return the sets whose rounds all ran alone and of which a case can be compared, and how many there are."""
    machines, neighbours = machines_of([version, *version.older]), neighbours_in(version)
    found = {}
    for one in version.with_speeds:
        own = {case.case_id: rounds_of(case) for case in measured_on_gpus(one)}
        rounds = [each for of_case in own.values() for each in of_case]
        models = {model for each in rounds if (model := gpu_model(each.record["environment"]))}
        if len(models) == 1 and all(neighbours.of(one, each.record) == 0 for each in rounds):
            known = {each.identity for each in rounds}
            others = [each for each in machines if {each.model} == models and not each.identities & known]
            row = _judged(one, {case_id: of_case for case_id, of_case in own.items() if of_case}, others)
            if row["compared"]:
                found[one.folder.name] = row
    words = [row["answer"] for row in found.values()]
    together = {"sets": len(found), "accepted": words.count("accepted"), "slow": words.count("slow")}
    return {"every judged set": together, **found} if found else {}


def _judged(one: StoredSet, own: Mapping[str, Sequence[Round]], machines: Sequence[Machine]) -> Json:
    cases: Cases = {}
    for case_id, rounds in own.items():
        others = [found for machine in machines if (found := machine.comparable(rounds[0].record))]
        if time := placed([each.time_s for each in rounds], [[each.time_s for each in found] for found in others]):
            cases[case_id] = time, _parts(rounds, others)
    words = [time.word for time, _ in cases.values()]
    failed = [
        case
        for case in measured_on_gpus(one)
        if not case.completed and any(record["outcome"] != "skipped" for record in case.rounds)
    ]
    is_accepted = {"within", "fast"} & {*words} and not failed
    slow = {case_id: case for case_id, case in cases.items() if case[0].word == "slow"}
    most = max((len(time.others) for time, _ in slow.values()), default=None)
    return {
        "machines": len(machines),
        "compared": sum(word in {"slow", "within", "fast"} for word in words),
        **{word: words.count(word) for word in ("slow", "within", "fast", "open")},
        "answer": "slow" if slow else "accepted" if is_accepted else "cannot say",
        "times_slowest": max((time.times_slowest or 0.0 for time, _ in slow.values()), default=None),
        "most_others": most,
        "once_in": None if most is None else most + 1,
        **_lost(slow),
        "parts": {name: row for name in PARTS if (row := _part(name, cases))} if slow else None,
    }


def _parts(rounds: Sequence[Round], others: Sequence[Sequence[Round]]) -> dict[str, Placed]:
    like = rounds[0].record
    found = {}
    for name in PARTS:
        one = placed(values_of(name, rounds, like), [values_of(name, theirs, like) for theirs in others])
        if one is not None:
            found[name] = one
    return found


def _lost(slow: Cases) -> Json:
    """Return the part in which slow cases lose most of what they lose beyond the median machine, and its mean share."""
    means = {}
    for name in OF_AN_ITERATION:
        placings = [(time.added, parts[name].added) for time, parts in slow.values() if name in parts]
        shares = [added / of_time for of_time, added in placings if of_time and added is not None]
        if shares:
            means[name] = sum(shares) / len(shares)
    most = max(means, key=means.__getitem__, default=None)
    if most is None or means[most] <= 0:
        return {"lost_in": None, "lost_share": None}
    return {"lost_in": most, "lost_share": means[most]}


def _part(name: str, cases: Cases) -> Json | None:
    """Return the word of a part in all cases that have it, and its value where it is furthest above the slowest."""
    found = {case_id: parts[name] for case_id, (_, parts) in cases.items() if name in parts}
    decided = {case_id: one for case_id, one in found.items() if one.word != "open"}
    likely = decided or {case_id: one for case_id, one in found.items() if one.others}
    if not likely:
        return None
    words = [one.word for one in decided.values()]
    most = [word for word in ("slow", "fast") if words and words.count(word) >= HALF * len(words)]
    case_id, worst = max(sorted(likely.items()), key=lambda item: item[1].times_slowest or 0.0)
    return {
        "word": most[0] if most else "within" if words else "open",
        "case": case_id,
        "value": worst.value,
        "slowest": max(worst.others),
    }
