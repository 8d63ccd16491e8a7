"""Sets with less evidence stand in a section of their own, and on no other page."""

from dataclasses import replace
from pathlib import Path

from reports.pages.data import less_evidence
from reports.sets.evidence import missing
from reports.sets.version import read_version
from tests.fixtures.results.committed_results import committed_version
from tests.fixtures.results.generated_results import full_results, make_case, make_result, write_results

WITHOUT = "a fingerprint of the work"


def test_no_set_of_the_first_page_lacks_fingerprints() -> None:
    version = committed_version()
    assert [one.name for one in version.scaling if WITHOUT in missing(one.campaign.results)] == []


def test_the_section_says_of_each_set_what_is_missing() -> None:
    said = less_evidence(committed_version()).text
    assert "35 of 35 rounds did not store a fingerprint of the work, checks of it after training, power and" in said


def test_an_archived_set_is_in_no_other_table_and_a_version_without_one_has_no_such_section(tmp_path: Path) -> None:
    for name in ("new", "old"):
        write_results(full_results(), tmp_path / name)
    version = read_version(tmp_path, name="v")
    assert version.archived == ()
    assert less_evidence(version).text == ""
    (tmp_path / "report.toml").write_text('[[set]]\nfolder = "old"\nrole = "archive"\n')
    version = read_version(tmp_path, name="v")
    assert ([one.name for one in version.scaling], [one.name for one in version.archived]) == (["new"], ["old"])
    assert "did not store" in less_evidence(version).text


def test_evidence_that_every_round_has_is_not_missing() -> None:
    result = make_result(make_case(device="cuda"), 1.0, 1.0)
    (first, second) = result.rounds
    with_it = replace(first, workload={"task": "Isaac-Ant"})
    assert WITHOUT not in missing([replace(result, rounds=(with_it,))])
    mixed = replace(result, rounds=(with_it, replace(second, workload=None)))
    assert "1 of 2 rounds did not store a fingerprint of the work" in missing([mixed])
