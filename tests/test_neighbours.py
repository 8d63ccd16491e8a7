from dataclasses import replace

from reports.neighbours import neighbours_sentence
from suite.schema import RunRecord
from tests.generated_results import make_case, make_record


def rounds(*neighbours: int | None) -> list[RunRecord]:
    return [replace(make_record(make_case(), index=i), neighbours=number) for i, number in enumerate(neighbours)]


def test_rounds_beside_others_are_counted() -> None:
    assert neighbours_sentence(rounds(0, 3, 1)) == (
        "2 of 3 rounds ran beside other cases on their host, with at most 3 of them at a time."
    )
    assert neighbours_sentence(rounds(0, 0)) == "0 of 2 rounds ran beside other cases on their host."


def test_what_is_not_known_is_said_and_is_not_none() -> None:
    assert neighbours_sentence(rounds(1, None)).endswith("of 1 it is not known, as their records do not say.")
    assert neighbours_sentence(rounds(None, None)).startswith("Of 2 rounds it is not known")
    assert neighbours_sentence([]) == "No round completed."
