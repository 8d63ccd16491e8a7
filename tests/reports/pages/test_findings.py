"""Findings of the published versions: claims without numbers; their figures are rows of the table, and as sure."""

import re
from collections import Counter
from pathlib import Path

import pytest

from reports.data.words import configuration_name
from reports.figures.tables import runs_of
from reports.pages.findings import figures_of, findings, section
from reports.sets.version import read_version
from suite.errors import ReportError
from tests.fixtures.results.committed_results import newest_version
from tests.fixtures.results.generated_results import on_gpus, smoke_results, write_results

NAMES = re.compile(r"\bH[12]00s?\b|\b[24] GPUs\b|\bStable-Baselines3\b")  # digits that are no result
MOST = 27  # over all versions, so that each can be read


def test_findings_are_few_their_ids_differ_and_their_sets_exist() -> None:
    ids = [finding.id for _, finding in findings(newest_version())]
    assert 0 < len(ids) <= MOST
    assert len(ids) == len(set(ids))
    for own, finding in findings(newest_version()):
        assert finding.sets
        assert {*finding.sets} <= {result_set.name for result_set in own.sets}


def test_a_claim_is_one_sentence_without_figures() -> None:
    for _, finding in findings(newest_version()):
        for text in (finding.claim, finding.so_what, finding.replaces or "None."):
            assert re.fullmatch(r"[^.]+\.", text)
            assert re.search(r"\d", NAMES.sub("", text)) is None, text


def test_a_finding_is_as_sure_as_its_figures() -> None:
    """A pattern without a figure is a mistake, and none is clear without figures or whose ratios have no interval."""
    for own, finding in findings(newest_version()):
        words = {row["status"] for row in figures_of(own, finding)}
        assert bool(words) == bool(finding.figures), finding.id
        if words - {""} and words != {None} and finding.status == "clear":
            assert "clear" in words or None in words, finding.id
        if finding.status == "clear":
            assert words, finding.id
            of_rewards = {row["status"] for row in figures_of(own, finding) if row["id"].endswith("/sooner")}
            assert of_rewards <= {"clear"}, finding.id


def test_two_figures_of_a_finding_have_two_names_in_words() -> None:
    """The same training is named with its set, since two may have run it."""
    for own, finding in findings(newest_version()):
        heading, names = "", []
        for line in re.findall(r"<dd>(.*?)</dd>", section(own, finding)[1].markup):
            if line.endswith(":"):
                heading = line
            elif "<data" in line:
                names.append((heading, line.rpartition(": ")[2]))
        assert len(names) == len({*names}), finding.id


def test_two_configurations_of_a_campaign_have_two_names_in_words() -> None:
    for version in (newest_version(), *newest_version().older):
        rows = runs_of(version).configurations
        names = [(row["set"], configuration_name(row)) for row in rows if row["device"] == "cuda"]
        assert len(names) > 90
        assert [name for name, number in Counter(names).items() if number > 1] == []


def test_a_wrong_entry_is_named_with_its_file(tmp_path: Path) -> None:
    write_results(on_gpus(smoke_results()), tmp_path / "one")
    (tmp_path / "findings.toml").write_text('[[finding]]\nid = "x"\nclaim = "X."\nstatus = "sure"\nsets = ["one"]\n')
    with pytest.raises(ReportError, match=r"findings\.toml: .*\n.*so_what"):
        findings(read_version(tmp_path, name="v"))
