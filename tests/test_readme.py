import json
import statistics
from pathlib import Path

from reports.readme import BEGIN, END, results_table
from suite import upstream
from suite.store import load_results

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "reports" / "results" / "2026.11"


def test_the_readme_shows_the_results_in_git() -> None:
    shown = (ROOT / "README.md").read_text().partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == results_table(load_results(RESULTS / "h200-x4"))


def test_what_the_readme_says_of_our_clock_holds_in_every_stored_run() -> None:
    """At most 0.5 % between our iteration time and the library's own, in the same process, on rank 0."""
    records = [
        record
        for folder in ("h200-x4", "h200-x4-upstream", "cpu-upstream")
        for result in load_results(RESULTS / folder)
        for record in result.completed
    ]
    differences = []
    for record in records:
        ours_s, library_s = upstream.medians_of_rank_0(record)
        assert library_s is not None
        differences.append(ours_s / library_s - 1)
    assert len(differences) > 40
    assert max(map(abs, differences)) < 0.005


def median_differences(folder: str) -> dict[str, float]:
    """Median difference between our processes and upstream's, drift cancelled, by the task's first word."""
    pairs = [upstream.Pair(**stored) for stored in json.loads((RESULTS / folder / "upstream.json").read_text())]
    return {
        case_id.partition("-")[0]: statistics.median(
            upstream.bracketed_differences([pair for pair in pairs if pair.case_id == case_id])
        )
        for case_id in {pair.case_id for pair in pairs}
    }


def test_what_the_readme_says_of_upstreams_own_processes_holds() -> None:
    quiet, busy = median_differences("cpu-upstream"), median_differences("h200-x4-upstream")
    assert set(quiet) == {"cartpole", "ant"}
    assert max(map(abs, quiet.values())) < 0.01
    assert set(busy) == {"cartpole", "ant", "shadow"}
    assert max(abs(busy["cartpole"]), abs(busy["shadow"])) < 0.01
    assert abs(busy["ant"]) < 0.012
