"""Every published set, judged as `nox -s accept` does."""

from dataclasses import replace

from reports.topics.acceptance import page
from reports.topics.acceptance.page import has_shared_work, judged_sets
from tests.fixtures.results import version_2026_12
from tests.fixtures.results.committed_results import committed_version


def test_the_slowest_host_is_slow_and_its_page_says_why() -> None:
    """`tests/reports/accept/test_stored_machines.py` knows it as host M."""
    version = committed_version()
    judged = judged_sets(version)
    found = {one.title: one.judgement for one in judged}
    slow = found["1 x H200, 22 Nov 2026: PhysX beside Newton"]
    assert slow.answer == "slow"
    said = page.sets(judged).text
    assert "1 x H200, 22 Nov 2026: PhysX beside Newton. Slow: " in said
    assert "The slow part is likely the CPU core" in said or "The slow part is the CPU core" in said
    answers = [one.answer for one in found.values()]
    said = page.answer(judged).text
    assert f"{answers.count('accepted')} would be accepted and {answers.count('slow')} are slow" in said


def test_machines_of_older_versions_are_among_the_others() -> None:
    newer = version_2026_12.version()
    alone = {one.title: len(one.judgement.machines) for one in judged_sets(newer)}
    with_older = {
        one.title: len(one.judgement.machines) for one in judged_sets(replace(newer, older=(committed_version(),)))
    }
    assert alone.keys() <= with_older.keys()
    assert all(with_older[title] > number for title, number in alone.items() if "H200" in title)


def test_a_version_of_one_machine_has_no_such_page() -> None:
    newer = version_2026_12.version()
    assert has_shared_work(newer)
    alone = replace(newer, sets=newer.sets[:1])
    assert not has_shared_work(alone)
    assert page.answer(judged_sets(alone)).text.startswith("No other machine with the same GPUs ran a case")
