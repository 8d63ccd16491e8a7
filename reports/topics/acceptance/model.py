"""How `nox -s accept` judges each published set among the other machines with its GPU model. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.accept.judgement import Answer, Judgement, judge
from reports.accept.published import machines_of, others
from reports.sets.version import Version


@dataclass(frozen=True, kw_only=True)
class JudgedSet:
    """``title``: of the set."""

    title: str
    judgement: Judgement


def answers(found: Sequence[JudgedSet]) -> Mapping[Answer, int]:
    """Return how many sets have each answer; 0 of one that none has."""
    return Counter(one.judgement.answer for one in found)


def has_shared_work(version: Version) -> bool:
    """Whether two machines with one GPU model ran the same work, one of them in this version. Quicker than to judge."""
    ran_on = Counter(
        (machine.model, work) for machine in machines_of((version, *version.older)) for work in machine.by_work
    )
    here = {(machine.model, work) for machine in machines_of((version,)) for work in machine.by_work}
    return any(ran_on[each] > 1 for each in here)


def judged_sets(version: Version) -> tuple[JudgedSet, ...]:
    """Judge every set whose machine ran nothing beside, and which shares a case with another machine.

    The other machines are those of this version and of older ones.
    """
    machines = machines_of((version, *version.older))
    found = []
    for one in version.scaling:
        results = one.campaign.results
        own = [record for result in results for record in result.completed if record.case.device == "cuda"]
        models = {record.environment.gpus[0].name for record in own if record.environment.gpus}
        if len(models) != 1 or one.shared_machine != "no":
            continue
        (model,) = models
        judgement = judge(results, model, [machine for machine in others(machines, own) if machine.model == model])
        if judgement.with_word("slow", "within", "fast"):
            found.append(JudgedSet(title=one.title, judgement=judgement))
    return tuple(found)
