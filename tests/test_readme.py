import json
import statistics
from collections.abc import Sequence
from pathlib import Path

from reports.readme import BEGIN, END, results_table
from suite import upstream
from suite.store import load_results

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reports" / "results" / "2026.11"


def test_the_readme_shows_the_results_in_git() -> None:
    shown = (ROOT / "README.md").read_text().partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == results_table(load_results(RESULTS / "h200-x4"))


FOLDERS = ("h200-x4", "h200-x4-upstream", "h200-x4-pairs", "h200-x4-pairs-4", "cpu-upstream")


def clock_differences(folders: Sequence[str]) -> list[float]:
    """Relative difference between our iteration time and the library's own in the same process, rank 0, every run."""
    differences = []
    for record in (
        record for folder in folders for result in load_results(RESULTS / folder) for record in result.completed
    ):
        ours_s, library_s = upstream.medians_of_rank_0(record)
        assert library_s is not None
        differences.append(ours_s / library_s - 1)
    return differences


def pairs_in(folder: str) -> list[upstream.Pair]:
    return [upstream.Pair(**stored) for stored in json.loads((RESULTS / folder / "upstream.json").read_text())]


def test_what_the_readme_says_of_our_clock_holds_in_every_stored_run() -> None:
    differences = clock_differences(FOLDERS)
    assert len(differences) > 60
    assert max(map(abs, differences)) < 0.005
    assert max(map(abs, clock_differences(["h200-x4-pairs", "h200-x4-pairs-4"]))) < 0.0025


def test_what_the_readme_says_of_upstream_on_a_quiet_machine_holds() -> None:
    pairs = pairs_in("cpu-upstream")
    for task in ("cartpole", "ant"):
        of_task = [pair for pair in pairs if pair.case_id.startswith(task)]
        assert len(of_task) == 3
        assert abs(statistics.median(upstream.bracketed_differences(of_task))) < 0.01


def test_what_the_readme_says_of_upstream_on_h200s_holds() -> None:
    """The interval is the distribution-free one between two order statistics (97 % for 38)."""
    pairs = [pair for folder in ("h200-x4-upstream", "h200-x4-pairs", "h200-x4-pairs-4") for pair in pairs_in(folder)]
    differences = sorted(pair.difference for pair in pairs)
    assert len(differences) == 38
    shown = [f"{value:+.1%}" for value in (differences[13], statistics.median(differences), differences[24])]
    assert shown == ["-0.7%", "+0.1%", "+1.7%"]
    largest = {
        is_four: max(abs(pair.difference) for pair in pairs if ("1x4" in pair.case_id) == is_four)
        for is_four in (False, True)
    }
    assert {is_four: f"{value:.0%}" for is_four, value in largest.items()} == {False: "7%", True: "30%"}


def test_what_the_readme_says_of_the_interconnect_holds() -> None:
    found = [record.transport for result in load_results(RESULTS / "h200-x4-pairs-4") for record in result.completed]
    assert len(found) == 12
    assert {transport and transport.within_node for transport in found} == {("nvlink",)}
