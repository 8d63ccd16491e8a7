"""README.md says what results in git say, is short, and the pages it leads to are those of the book."""

import re
from pathlib import Path

import pytest

from reports import guide
from reports.analysis import case_rows
from reports.readme import BEGIN, END, findings, read, widest
from suite.campaign.runs import upstream
from suite.records.store import load_results
from tests.fixtures.results.committed_results import RESULTS, committed_version

ROOT = Path(__file__).resolve().parents[3]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SAID = " ".join(README.split())
NOTES = " ".join((RESULTS / "NOTES.md").read_text(encoding="utf-8").split())


def test_the_readme_shows_the_findings_in_git() -> None:
    assert README.partition(BEGIN)[2].partition(END)[0].strip() == findings()


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_every_page_of_the_guide_is_linked_from_the_readme() -> None:
    linked = {(ROOT / target).resolve() for target in re.findall(r"\]\(([^)#:]+)\)", README)}
    assert {path for path in linked if not path.exists()} == set()
    assert set(guide.PAGES.values()) <= linked


def test_the_words_around_the_findings_hold() -> None:
    """ "Neither surely faster than one nor surely slower", and "had not reached the reward"."""
    speedup = read("h200-x4-rsl").most_gpus("cartpole-strong").speedup_interval
    assert speedup is not None
    assert speedup[0] < 1 < speedup[1]
    assert widest(read("h200-open-rsl")).ended_before


def clock_differences() -> list[float]:
    """Relative difference of our iteration time and the library's own in one process, rank 0, all training rounds."""
    differences = []
    sets = [path.parent for path in sorted(RESULTS.glob("*/SHA256SUMS"))]
    folders = [folder for one in sets for folder in (one, one / "a_a", one / "interference") if folder.is_dir()]
    results = [result for folder in folders for result in load_results(folder) if result.case.workload == "train"]
    for record in (record for result in results for record in result.completed):
        ours_s, library_s = upstream.medians_of_rank_0(record)
        assert library_s is not None
        differences.append(ours_s / library_s - 1)
    return differences


def test_what_the_readme_says_of_our_clock_holds_in_every_stored_run() -> None:
    differences = clock_differences()
    assert len(differences) > 600
    assert "by at most 0.9 % in every training run stored here, and by at most 0.5 % in all but two." in SAID
    assert sorted(abs(one) for one in differences if abs(one) > 0.005) == pytest.approx([0.0064, 0.0081], abs=0.0001)


def test_what_the_readme_says_of_hosts_holds() -> None:
    first, second = (
        {row.case_id: row for row in case_rows(load_results(RESULTS / name)) if row.world_size == 1}
        for name in ("h200-x4-full", "h200-x4")
    )
    factors = [(second[case_id].total_fps or 0) / (row.total_fps or 0) for case_id, row in first.items()]
    for said in (SAID, NOTES):
        assert f"by a factor of {min(factors):.1f} to {max(factors):.1f} on one GPU" in said


def test_what_the_notes_say_of_slowed_cores_holds() -> None:
    (campaign,) = (one.campaign for one in committed_version().sets if one.name == "h200-x4-full")
    slowed = str(campaign.slowed_cores)
    assert "254 of 315 times" in NOTES
    assert "after 254 of 315 marked iterations a fixed piece of Python's work took over 1.3 times" in slowed
    assert "the next iteration 31 % longer" in NOTES
    assert "the next iteration took 31% longer" in slowed
