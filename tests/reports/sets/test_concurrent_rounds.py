from collections.abc import Sequence
from dataclasses import replace

from reports.sets.concurrent_rounds import neighbours_sentence, with_other_campaigns
from suite.schema.record import CaseResult, RunRecord
from tests.fixtures.results.generated_results import make_case, make_record


def rounds(*neighbours: int | None) -> list[RunRecord]:
    return [replace(make_record(make_case(), index=i), neighbours=number) for i, number in enumerate(neighbours)]


def test_rounds_beside_others_are_counted() -> None:
    assert neighbours_sentence(rounds(0, 3, 1)) == (
        "2 of 3 rounds ran beside other cases on their host, with at most 3 of them at a time."
    )
    assert neighbours_sentence(rounds(0, 0)) == "0 of 2 rounds ran beside other cases on their host."


def test_what_is_not_known_is_said_and_is_not_none() -> None:
    assert neighbours_sentence(rounds(1, None)).endswith("of 1 it is not known, as the records do not say.")
    assert neighbours_sentence(rounds(None, None)).startswith("Of 2 rounds it is not known")
    assert neighbours_sentence([]) == "No round completed."


def at(minute: int, *, seconds: float = 90.0, host: str = "one host") -> CaseResult:
    """A case with one round that began at ``minute`` and took ``seconds``; the records of its campaign show none."""
    record = make_record(make_case(), index=minute)
    environment = replace(record.environment, host_label=host)
    return CaseResult(
        case=record.case, rounds=(replace(record, neighbours=0, wall_time_s=seconds, environment=environment),)
    )


def neighbours_of(*campaigns: Sequence[CaseResult]) -> list[list[int | None]]:
    return [[each.rounds[0].neighbours for each in results] for results in with_other_campaigns(campaigns)]


def test_campaigns_that_ran_at_the_same_time_on_one_host_are_beside_each_other() -> None:
    assert neighbours_of([at(0)], [at(1)], [at(1)]) == [[2], [2], [2]]
    # Two of another campaign one after the other: at a time there is one.
    assert neighbours_of([at(0, seconds=600)], [at(1), at(4)]) == [[1], [1, 1]]


def test_rounds_of_one_campaign_of_another_host_or_of_another_time_are_not_beside_each_other() -> None:
    assert neighbours_of([at(0), at(1)], [at(0, host="another")], [at(7)]) == [[0, 0], [0], [0]]


def test_what_is_not_known_of_a_round_stays_so_unless_another_campaign_says_it() -> None:
    unknown, other = at(0), at(0)
    unknown = replace(unknown, rounds=(replace(unknown.rounds[0], neighbours=None),))
    assert neighbours_of([unknown], [at(9)]) == [[None], [0]]
    assert neighbours_of([unknown], [other]) == [[1], [1]]
    unlabelled = at(0)
    none = replace(unlabelled.rounds[0], environment=replace(unlabelled.rounds[0].environment, host_label=None))
    skipped = replace(unlabelled.rounds[0], started_utc=None, wall_time_s=None)
    assert neighbours_of([replace(unlabelled, rounds=(none,))], [other]) == [[0], [0]]
    assert neighbours_of([replace(unlabelled, rounds=(skipped,))], [other]) == [[0], [0]]
