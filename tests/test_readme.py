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


FOLDERS = ("h200-x4", "h200-x4-upstream", "h200-x4-pairs", "cpu-upstream")


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
    assert max(map(abs, clock_differences(["h200-x4-pairs"]))) < 0.0025


def test_what_the_readme_says_of_upstream_on_a_quiet_machine_holds() -> None:
    pairs = pairs_in("cpu-upstream")
    for task in ("cartpole", "ant"):
        of_task = [pair for pair in pairs if pair.case_id.startswith(task)]
        assert len(of_task) == 3
        assert abs(statistics.median(upstream.bracketed_differences(of_task))) < 0.01


def test_what_the_readme_says_of_upstream_on_h200s_holds() -> None:
    """Single pairs up to 6 %; the interval is the distribution-free one between two order statistics (97 % for 26)."""
    differences = sorted(
        pair.difference for folder in ("h200-x4-upstream", "h200-x4-pairs") for pair in pairs_in(folder)
    )
    assert len(differences) == 26
    shown = [f"{value:+.1%}" for value in (differences[7], statistics.median(differences), differences[18])]
    assert shown == ["-0.7%", "+0.3%", "+2.1%"]
    assert 0.06 < max(map(abs, differences)) < 0.07
