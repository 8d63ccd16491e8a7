"""What the notes of version 2026.11 say of nodes, learning, cores and measuring itself is what results in git say."""

import json
import statistics
from collections import Counter

import pytest

from reports.analysis.pairs_of_cases import nodes_side_by_side
from reports.analysis.seeds import seeds
from reports.sets import interference
from reports.sets.evidence import EVIDENCE, has_fingerprints
from reports.topics.losses.findings import fillings, learned_in_strong_scaling
from suite.campaign.runs import upstream
from suite.files.paths import ROOT
from suite.records.store import load_results
from suite.statistics.core_speed import fastest_probes_s, slowed_cores
from tests.fixtures.results.committed_results import NOTES, RESULTS, committed_set, committed_version

README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


GPU_PAIRS = ("h200-x4-upstream", "h200-x4-pairs", "h200-x4-pairs-4", "h200-x2-pairs", "h200-x2-pairs-2")


def test_the_versions_that_the_notes_name_are_those_of_every_set() -> None:
    records = [record for one in committed_version().sets for record in one.campaign.completed]
    names = {
        "Isaac Lab": "isaaclab",
        **{name: name for name in ("torch", "rl-games", "rsl-rl-lib")},
        "Newton": "newton",
    }
    for spoken, name in names.items():
        (version,) = {rank.settings[f"versions.{name}"] for record in records for rank in record.ranks}
        assert f"{spoken} {version}" in NOTES
    on_gpus = [record for record in records if record.environment.gpus]
    (driver,) = {record.environment.driver_version for record in on_gpus}
    (nccl,) = {rank.settings["versions.nccl"] for record in on_gpus for rank in record.ranks}
    assert f"driver {driver} and NCCL {nccl} on every GPU host" in NOTES


def test_the_notes_name_the_sets_without_fingerprints_and_their_rounds() -> None:
    version = committed_version()
    without = [one for one in version.sets if not has_fingerprints(one.campaign.results)]
    assert {one.role for one in without} == {"archive", "clock"}
    for one in without:
        records = one.campaign.completed
        assert not any(has(record) for record in records for has in EVIDENCE.values())
        assert {(record.started_utc or "")[:10] for record in records} == {"2026-11-21"}
    named = [f"[{one.name}]({one.name}/SHA256SUMS) ({len(one.campaign.completed)}" for one in without]
    said = NOTES.partition("No round of ")[2].partition(" stored a fingerprint")[0]
    assert all(name in said for name in named)
    assert said.count("SHA256SUMS") == len(without) == 4


def test_what_the_notes_say_cannot_be_computed_again_is_not_stored() -> None:
    sampled = {record.telemetry.rate_hz for one in committed_version().sets for record in one.campaign.completed
               if record.telemetry}  # fmt: skip
    assert sampled == {5.0}
    assert "read five times a second, of which records keep the least, the mean and the most" in NOTES
    assert {"theirs_s"} <= json.loads((RESULTS / "h200-x4-pairs" / "upstream.json").read_text())[0].keys()
    assert "The raw samples were lost when the machine went back" in " ".join(
        (RESULTS / "h200-x4-marks.log").read_text(encoding="utf-8").split()
    )


def pairs_in(folder: str) -> list[upstream.Pair]:
    return [upstream.Pair(**stored) for stored in json.loads((RESULTS / folder / "upstream.json").read_text())]


def test_what_the_notes_say_of_upstream_on_a_quiet_machine_holds() -> None:
    pairs = pairs_in("cpu-upstream")
    for task in ("cartpole", "ant"):
        of_task = [pair for pair in pairs if pair.case_id.startswith(task)]
        assert len(of_task) == 3
        assert abs(statistics.median(upstream.bracketed_differences(of_task))) < 0.01


def test_what_the_notes_say_of_upstream_on_h200s_holds() -> None:
    pairs = [pair for folder in GPU_PAIRS for pair in pairs_in(folder)]
    assert len(pairs) == 45
    middle = 100 * statistics.median(pair.difference for pair in pairs)
    campaigns = [100 * statistics.median(pair.difference for pair in pairs_in(folder)) for folder in GPU_PAIRS]
    assert "(45 pairs, 1 to 4 GPUs, several hosts:" in NOTES
    *others, last = (f"{each:+.1f}" for each in campaigns)
    of_campaigns = f"of these five campaigns {', '.join(others)} and {last} %."
    assert f"the median difference is {middle:+.1f} %, and {of_campaigns}" in NOTES
    of_single = f"{min(campaigns):+.1f} to {max(campaigns):+.1f} % in single campaigns"
    low, high = (100 * chosen(pair.difference for pair in pairs) for chosen in (min, max))
    assert (
        f"on H200s (45 pairs, 1 to 4 GPUs) the median difference is {middle:+.1f} %, {of_single},"
        f" and {low:+.0f} to {high:+.0f} % in single pairs. No interval of it is given."
    ) in README
    largest = {
        topology: f"{max(abs(pair.difference) for pair in pairs if f'-{topology}' in pair.case_id):.0%}"
        for topology in ("1x1", "1x2", "1x4")
    }
    assert largest == {"1x1": "7%", "1x2": "16%", "1x4": "30%"}
    assert "by up to 7 % at 1 GPU, 16 % at 2 and 30 % at 4" in NOTES


def test_the_notes_name_the_cases_that_have_fewer_than_three_pairs() -> None:
    counts = Counter(pair.case_id for folder in GPU_PAIRS for pair in pairs_in(folder))
    few = {case_id.split("/")[0] + case_id[case_id.index("-1x") :][:4]: n for case_id, n in counts.items() if n < 3}
    assert few == {
        "cartpole-per-gpu-1x4": 2,
        "cartpole-strong-1x4": 2,
        "shadow-vertical-1x4": 2,
    }


@pytest.mark.parametrize(("name", "num_pairs"), [("h200-x2-nodes", 3), ("h200-x4-full", 2)])
def test_what_the_notes_say_of_emulated_nodes_holds(name: str, num_pairs: int) -> None:
    results = load_results(RESULTS / name)
    spread = [record.transport for result in results if result.case.nnodes > 1 for record in result.completed]
    assert {transport and transport.interconnect for transport in spread} == {"emulated (host_memory)"}
    named = {"ant-weak": "Ant", "cartpole-strong": "Cartpole", "shadow-horizontal": "Shadow Hand"}
    pairs = nodes_side_by_side(results)
    assert len(pairs) == num_pairs
    for pair in pairs:
        cost = pair.slower_by
        assert cost is not None
        assert cost.interval is not None
        value, low, high = (f"{100 * number:+.0f}" for number in (cost.value, *cost.interval))
        assert f"{value} % ({low} to {high}) for {named[pair.case.case.series]}" in NOTES


def test_what_the_notes_say_of_learning_in_strong_scaling_holds() -> None:
    version = committed_version()
    campaign = next(one.campaign for one in version.sets if one.name == "h200-x4-full")
    (found,) = learned_in_strong_scaling(campaign, seeds(version.learned, (), lambda _: ()))
    one, two, four = found
    assert (one.world_size, two.world_size, four.world_size, one.iterations) == (1, 2, 4, 60)
    assert f"reward was {one.reward:.1f} with 1 GPU, {two.reward:.1f} with 2 and {four.reward:.1f} with 4 (" in NOTES
    assert {len(each.of_seeds) for each in found} == {5}
    medians = "{:.1f}, {:.1f} and {:.1f}".format(*(statistics.median(each.of_seeds) for each in found))
    worst = "{:.1f}, {:.1f} and {:.1f}".format(*(each.of_seeds[0] for each in found))
    assert f"the medians were {medians}, the worst {worst}:" in NOTES


def test_what_the_notes_say_of_a_gpu_at_the_published_size_holds() -> None:
    sweep = committed_set("h200-x2-envs").campaign
    (found,) = fillings(sweep)
    usual, most = next(one for one in found if one.num_envs == 4096), found[-1]
    busy = [one.busy_percent for one in found if one.busy_percent is not None]
    assert f"makes {usual.fps['step'] / 1e6:.1f} million environment steps per second without learning" in NOTES
    assert f"{most.fps['step'] / 1e6:.1f} million with {most.num_envs}" in NOTES
    assert f"runs a kernel {min(busy):.0f} to {max(busy):.0f} % of the time" in NOTES


def test_what_the_notes_say_of_the_interconnect_holds() -> None:
    found = [record.transport for result in load_results(RESULTS / "h200-x4-pairs-4") for record in result.completed]
    assert len(found) == 12
    assert {transport and transport.within_node for transport in found} == {("nvlink",)}


def test_what_the_notes_say_of_slowed_cores_holds() -> None:
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
    assert "either about 110 or about 200 µs" in NOTES
    assert statistics.median(slow_us) == pytest.approx(200, abs=10)
    assert statistics.median(set(probes_us) - set(slow_us)) == pytest.approx(110, abs=5)
    said = slowed_cores(results, fastest_probes_s(records))
    assert said is not None
    assert "168 of 223" in str(said)
    assert "168 of 223 times the longer" in NOTES
    assert "took 28% longer" in str(said)
    assert "took 28 % longer" in NOTES
    stolen = [record.telemetry.stolen_share for record in records if record.telemetry]
    assert statistics.median(share for share in stolen if share is not None) < 0.0015
    busy = [record.telemetry.host_cpu_percent for record in records if record.telemetry]
    assert min(spread.mean for spread in busy if spread) == pytest.approx(100 / 32, abs=0.3)


def test_what_the_notes_say_of_cases_side_by_side_holds() -> None:
    found = interference.read(RESULTS / "h200-x2-envs" / interference.FILE)
    assert found is not None
    assert found.packed
    assert found.difference is not None
    assert found.interval is not None
    assert found.tolerance is not None
    shift, low, high = (f"{100 * value:+.1f}" for value in (found.difference, *found.interval))
    assert f"{shift} % beside another case ({low} to {high} %)" in NOTES
    assert f" {100 * found.tolerance:.1f} % by which the case differs from itself" in NOTES
    sweep = committed_set("h200-x2-envs")
    price = sweep.campaign.cost
    assert price is not None
    assert price.points == 7
    spent, loop = f"{price.spent.host:.0f}", f"{price.loop.host:.0f}"
    assert f"Seven points cost {spent} GPU-minutes of the host, the test included" in NOTES
    assert f"where a plain loop would have taken {loop}." in NOTES


def test_what_the_notes_say_of_cases_that_must_not_run_side_by_side_holds() -> None:
    found = interference.read(RESULTS / "h200-x4-short" / interference.FILE)
    assert found is not None
    assert not found.packed
    assert found.difference is not None
    assert found.interval is not None
    assert len(found.alone_s) == 6
    shift, low, high = (f"{100 * value:+.1f}" for value in (found.difference, *found.interval))
    assert f"it refused: {shift} % ({low} to {high} %), longer in all six pairs." in NOTES
    campaign = committed_set("h200-x4-short").campaign
    assert sum(len(one.rounds) for one in campaign.beside) == 13
    assert all(one in campaign.overhead for one in campaign.beside)
    price = campaign.cost
    assert price is not None
    assert price.points == 9
    said = f"cost {price.spent.host:.0f} GPU-minutes there where a plain loop would have taken {price.loop.host:.0f};"
    assert f"so nine points {said}" in NOTES
