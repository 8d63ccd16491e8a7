import json
import statistics
from collections import Counter
from pathlib import Path

import pytest

from reports.analysis import case_rows
from reports.findings import fillings, learned_in_strong_scaling
from reports.pairs_of_cases import nodes_side_by_side
from reports.readme import BEGIN, END, results_table
from reports.result_sets import read_version
from reports.seeds import seeds
from suite import interference, upstream
from suite.a_a import noise_budget, twin_pairs
from suite.core_speed import fastest_probes_s, slowed_cores
from suite.store import load_results

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text()
RESULTS = ROOT / "reports" / "results" / "2026.11"


def test_the_readme_shows_the_results_in_git() -> None:
    shown = README.partition(BEGIN)[2].partition(END)[0].strip()
    sets = ("h200-x4-full", "h200-x4", "h200-x4-rsl")
    assert shown == "\n\n".join(results_table(load_results(RESULTS / name)) for name in sets)


GPU_PAIRS = ("h200-x4-upstream", "h200-x4-pairs", "h200-x4-pairs-4", "h200-x2-pairs", "h200-x2-pairs-2")


def clock_differences() -> list[float]:
    """Relative difference of our iteration time and the library's own in one process, rank 0, all training rounds."""
    differences = []
    sets = [path.parent for path in sorted(RESULTS.glob("*/SHA256SUMS"))]
    results = [result for one in sets for result in load_results(one) if result.case.workload == "train"]
    for record in (record for result in results for record in result.completed):
        ours_s, library_s = upstream.medians_of_rank_0(record)
        assert library_s is not None
        differences.append(ours_s / library_s - 1)
    return differences


def pairs_in(folder: str) -> list[upstream.Pair]:
    return [upstream.Pair(**stored) for stored in json.loads((RESULTS / folder / "upstream.json").read_text())]


def test_what_the_readme_says_of_our_clock_holds_in_every_stored_run() -> None:
    differences = clock_differences()
    assert len(differences) > 400
    assert max(map(abs, differences)) < 0.005


def test_what_the_readme_says_of_upstream_on_a_quiet_machine_holds() -> None:
    pairs = pairs_in("cpu-upstream")
    for task in ("cartpole", "ant"):
        of_task = [pair for pair in pairs if pair.case_id.startswith(task)]
        assert len(of_task) == 3
        assert abs(statistics.median(upstream.bracketed_differences(of_task))) < 0.01


def test_what_the_readme_says_of_upstream_on_h200s_holds() -> None:
    """The interval is the distribution-free one between two order statistics (96 % for 45)."""
    pairs = [pair for folder in GPU_PAIRS for pair in pairs_in(folder)]
    differences = sorted(pair.difference for pair in pairs)
    assert len(differences) == 45
    low, middle, high = (100 * value for value in (differences[15], statistics.median(differences), differences[29]))
    assert "(45 pairs, 1 to 4 GPUs, several hosts; also\n" in README
    assert f"the median difference is {middle:+.1f} % (96 % interval {low:+.1f} to {high:+.1f} %)" in README
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
        "cartpole-per-gpu-1x4": 2,
        "cartpole-strong-1x4": 2,
        "shadow-vertical-1x4": 2,
    }


@pytest.mark.parametrize(("name", "num_pairs"), [("h200-x2-nodes", 3), ("h200-x4-full", 2)])
def test_what_the_readme_says_of_emulated_nodes_holds(name: str, num_pairs: int) -> None:
    results = load_results(RESULTS / name)
    spread = [record.transport for result in results if result.case.nnodes > 1 for record in result.completed]
    assert {transport and transport.interconnect for transport in spread} == {"emulated (host_memory)"}
    named = {"ant-weak": "Ant", "cartpole-strong": "Cartpole", "shadow-horizontal": "Shadow Hand"}
    said = " ".join(README.split())
    pairs = nodes_side_by_side(results)
    assert len(pairs) == num_pairs
    for pair in pairs:
        cost = pair.slower_by
        assert cost is not None
        assert cost.interval is not None
        value, low, high = (f"{100 * number:+.0f}" for number in (cost.value, *cost.interval))
        assert f"{value} % ({low} to {high}) for {named[pair.case.case.series]}" in said


def test_what_the_readme_says_of_the_two_hosts_holds() -> None:
    first, second = (
        {row.case_id: row for row in case_rows(load_results(RESULTS / name)) if row.world_size == 1}
        for name in ("h200-x4-full", "h200-x4")
    )
    factors = [(second[case_id].total_fps or 0) / (row.total_fps or 0) for case_id, row in first.items()]
    said = " ".join(README.split())
    assert f"by a factor of {min(factors):.1f} to {max(factors):.1f} on one GPU" in said
    campaign = next(one.campaign for one in read_version(RESULTS, name="v").sets if one.name == "h200-x4-full")
    slowed = str(campaign.slowed_cores)
    assert "254 of 315 times" in said
    assert "after 254 of 315 marked iterations a fixed piece of Python's work took over 1.3 times" in slowed
    assert "the next iteration 31 % longer" in said
    assert "the next iteration took 31% longer" in slowed
    noise = noise_budget(twin_pairs((*campaign.results, *campaign.twins)))
    assert noise is not None
    assert f"whose noise is {100 * noise:.1f} %" in said


def test_what_the_readme_says_of_learning_in_strong_scaling_holds() -> None:
    version = read_version(RESULTS, name="v")
    campaign = next(one.campaign for one in version.sets if one.name == "h200-x4-full")
    (found,) = learned_in_strong_scaling(campaign, seeds(version.learned, (), lambda _: ()))
    one, two, four = found
    assert (one.world_size, two.world_size, four.world_size, one.iterations) == (1, 2, 4, 60)
    said = " ".join(README.split())
    assert f"reward was {one.reward:.1f} with 1 GPU, {two.reward:.1f} with 2 and {four.reward:.1f} with 4." in said
    assert {len(each.of_seeds) for each in found} == {5}
    medians = "{:.1f}, {:.1f} and {:.1f}".format(*(statistics.median(each.of_seeds) for each in found))
    worst = "{:.1f}, {:.1f} and {:.1f}".format(*(each.of_seeds[0] for each in found))
    assert f"the medians were {medians}, the worst {worst}:" in said


def test_what_the_readme_says_of_a_gpu_at_the_published_size_holds() -> None:
    sweep = next(one.campaign for one in read_version(RESULTS, name="v").sets if one.name == "h200-x2-envs")
    (found,) = fillings(sweep)
    usual, most = next(one for one in found if one.num_envs == 4096), found[-1]
    busy = [one.busy_percent for one in found if one.busy_percent is not None]
    said = " ".join(README.split())
    assert f"makes {usual.fps['step'] / 1e6:.1f} million environment steps per second without learning" in said
    assert f"{most.fps['step'] / 1e6:.1f} million with {most.num_envs}" in said
    assert f"runs a kernel {min(busy):.0f} to {max(busy):.0f} % of the time" in said


def test_what_the_readme_says_of_the_interconnect_holds() -> None:
    found = [record.transport for result in load_results(RESULTS / "h200-x4-pairs-4") for record in result.completed]
    assert len(found) == 12
    assert {transport and transport.within_node for transport in found} == {("nvlink",)}


def test_what_the_readme_says_of_slowed_cores_holds() -> None:
    sweep = RESULTS / "h200-x2-envs"
    results = [*load_results(sweep), *load_results(sweep / "interference")]
    records = [record for result in results for record in result.completed]
    probes_us = [
        1e6 * probe_s
        for record in records
        for probe_s in record.ranks[0].samples["core_probe_time_s"]
        if probe_s is not None
    ]
    slow_us = [probe_us for probe_us in probes_us if probe_us > 1.3 * min(probes_us)]
    assert "either about 110 or about 200 µs" in README
    assert statistics.median(slow_us) == pytest.approx(200, abs=10)
    assert statistics.median(set(probes_us) - set(slow_us)) == pytest.approx(110, abs=5)
    said = slowed_cores(results, fastest_probes_s(records))
    assert said is not None
    assert "168 of 223" in said
    assert "168 of 223 times the longer" in README
    assert "took 28% longer" in said
    assert "took 28 % longer" in README
    stolen = [record.telemetry.stolen_share for record in records if record.telemetry]
    assert statistics.median(share for share in stolen if share is not None) < 0.0015
    busy = [record.telemetry.host_cpu_percent for record in records if record.telemetry]
    assert min(spread.mean for spread in busy if spread) == pytest.approx(100 / 32, abs=0.3)


def test_what_the_readme_says_of_cases_side_by_side_holds() -> None:
    found = interference.read(RESULTS / "h200-x2-envs" / interference.FILE)
    assert found is not None
    assert found.packed
    assert found.difference is not None
    assert found.interval is not None
    assert found.tolerance is not None
    shift, low, high = (f"{100 * value:+.1f}" for value in (found.difference, *found.interval))
    assert f"{shift} % beside another case ({low} to {high} %)" in README
    assert f"  {100 * found.tolerance:.1f} % by which the case differs from itself" in README
    (sweep,) = (one for one in read_version(RESULTS, name="").sets if one.name == "h200-x2-envs")
    price = sweep.campaign.cost
    assert price is not None
    assert price.points == 7
    spent, loop = f"{price.spent.host:.0f}", f"{price.loop.host:.0f}"
    assert f"Seven points cost {spent} GPU-minutes of the host, the test included" in README
    assert f"where a plain loop would have taken {loop}." in README


def test_what_the_readme_says_of_cases_that_must_not_run_side_by_side_holds() -> None:
    found = interference.read(RESULTS / "h200-x4-short" / interference.FILE)
    assert found is not None
    assert not found.packed
    assert found.difference is not None
    assert found.interval is not None
    assert len(found.alone_s) == 6
    shift, low, high = (f"{100 * value:+.1f}" for value in (found.difference, *found.interval))
    assert f"it refused: {shift} % ({low} to {high} %), longer in all six pairs." in README
    campaign = next(one for one in read_version(RESULTS, name="").sets if one.name == "h200-x4-short").campaign
    assert sum(len(one.rounds) for one in campaign.beside) == 13
    assert all(one in campaign.overhead for one in campaign.beside)
    price = campaign.cost
    assert price is not None
    assert price.points == 9
    said = f"cost {price.spent.host:.0f} GPU-minutes there where a plain loop would have taken {price.loop.host:.0f};"
    assert f"so nine points {said}" in README
