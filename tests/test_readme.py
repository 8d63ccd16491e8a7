import json
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from reports.pairs_of_cases import nodes_side_by_side
from reports.readme import BEGIN, END, results_table
from suite import upstream
from suite.store import load_results

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
RESULTS = ROOT / "reports" / "results" / "2026.11"


def test_the_readme_shows_the_results_in_git() -> None:
    shown = README.partition(BEGIN)[2].partition(END)[0].strip()
    assert shown == results_table(load_results(RESULTS / "h200-x4"))


GPU_PAIRS = ("h200-x4-upstream", "h200-x4-pairs", "h200-x4-pairs-4", "h200-x2-pairs")
FOLDERS = ("h200-x4", "h200-x2-nodes", "cpu-upstream", *GPU_PAIRS)


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
    assert max(map(abs, clock_differences(["h200-x4-pairs", "h200-x4-pairs-4", "h200-x2-pairs"]))) < 0.0025


def test_what_the_readme_says_of_upstream_on_a_quiet_machine_holds() -> None:
    pairs = pairs_in("cpu-upstream")
    for task in ("cartpole", "ant"):
        of_task = [pair for pair in pairs if pair.case_id.startswith(task)]
        assert len(of_task) == 3
        assert abs(statistics.median(upstream.bracketed_differences(of_task))) < 0.01


def test_what_the_readme_says_of_upstream_on_h200s_holds() -> None:
    """The interval is the distribution-free one between two order statistics (97 % for 43)."""
    pairs = [pair for folder in GPU_PAIRS for pair in pairs_in(folder)]
    differences = sorted(pair.difference for pair in pairs)
    assert len(differences) == 43
    low, middle, high = (100 * value for value in (differences[14], statistics.median(differences), differences[28]))
    assert "(43 pairs, 1 to 4 GPUs, several hosts; also\n" in README
    assert f"the median difference is {middle:+.1f} % (97 % interval {low:+.1f} to {high:+.1f} %)" in README
    largest = {
        topology: f"{max(abs(pair.difference) for pair in pairs if f'-{topology}' in pair.case_id):.0%}"
        for topology in ("1x1", "1x2", "1x4")
    }
    assert largest == {"1x1": "7%", "1x2": "16%", "1x4": "30%"}
    assert "by up to 7 % at 1 GPU, 16 % at 2 and 30 % at 4" in README


def test_the_readme_names_the_cases_that_have_fewer_than_three_pairs() -> None:
    counts = Counter(pair.case_id for folder in GPU_PAIRS for pair in pairs_in(folder))
    few = {case_id.split("/")[0] + case_id[case_id.index("-1x") :][:4]: n for case_id, n in counts.items() if n < 3}
    assert few == {
        "shadow-vertical-1x2": 1,
        "cartpole-per-gpu-1x4": 2,
        "cartpole-strong-1x4": 2,
        "shadow-vertical-1x4": 2,
    }


def test_what_the_readme_says_of_emulated_nodes_holds() -> None:
    results = load_results(RESULTS / "h200-x2-nodes")
    spread = [record.transport for result in results if result.case.nnodes > 1 for record in result.completed]
    assert {transport and transport.interconnect for transport in spread} == {"emulated (host_memory)"}
    named = {"ant-weak": "Ant", "cartpole-strong": "Cartpole", "shadow-horizontal": "Shadow Hand"}
    for pair in nodes_side_by_side(results):
        cost = pair.slower_by
        assert cost is not None
        assert cost.interval is not None
        value, low, high = (f"{100 * number:+.0f}" for number in (cost.value, *cost.interval))
        assert f"{value} % ({low} to {high}) for {named[pair.case.case.series]}" in README


def test_what_the_readme_says_of_the_interconnect_holds() -> None:
    found = [record.transport for result in load_results(RESULTS / "h200-x4-pairs-4") for record in result.completed]
    assert len(found) == 12
    assert {transport and transport.within_node for transport in found} == {("nvlink",)}
