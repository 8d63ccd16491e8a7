"""A committed case, damaged in every way that matters: each damage has to be named."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports.verification.samples.case_file import read_case
from tests.fixtures.results.damaged_results import (
    CASE,
    PAIRS,
    PIPELINE,
    SEEDS,
    TWO_GPUS,
    TWO_NODES,
    VERSION,
    Damage,
    column,
    damaged_case,
    ranks,
    rounds,
    scale,
    set_item,
)

FAILED = {"name": "camera form", "feature": "cameras", "verdict": "failure", "found": "grey", "fault": "constant"}


@pytest.mark.parametrize("path", [PAIRS / CASE, TWO_GPUS, TWO_NODES, PIPELINE], ids=lambda path: path.stem)
def test_nothing_is_found_where_nothing_is_damaged(path: Path, tmp_path: Path) -> None:
    assert damaged_case(path, lambda _: None, tmp_path) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: set_item(d["benchmarks"][0]["stats"], "median", 0.05), "stats.median"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "mean", 0.0893794), "stats.mean"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "q1", 0.08), "stats.q1"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "outliers", "0;0"), "stats.outliers"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "hd15iqr", 0.1), "stats.hd15iqr"),
        (lambda d: set_item(d["benchmarks"][0]["stats"], "iterations", 2), "stats.iterations"),
        (lambda d: set_item(d["benchmarks"][0]["stats"]["data"], 1, 0.09), "stats.data[1]"),
        (lambda d: d["benchmarks"][0]["stats"]["data"].pop(), "stats.data"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"]["total_fps"], 2, 1e6), "extra_info.total_fps[2]"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"], "runs", [0, 1]), "extra_info.runs"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"], "frames_per_iteration", 65536), "frames_per_iteration"),
        (lambda d: set_item(d["benchmarks"][0]["extra_info"], "statistic", "the best"), "extra_info.statistic"),
        (lambda d: set_item(d["benchmarks"][0], "param", "another/case"), "param"),
        (lambda d: d.update(benchmarks=[]), "the number of benchmarks"),
        (lambda d: set_item(d["commit_info"], "id", "0" * 40), "commit_info.id"),
        (lambda d: rounds(d).pop(0), "the numbers of the rounds"),
        (lambda d: rounds(d)[1]["ranks"].pop(), "round 1"),
        (lambda d: column(d, "reward_mean").pop(), "round 0"),
        (lambda d: [one.append(one[-1]) for one in ranks(d)[1]["samples"].values()], "round 0"),
        (
            lambda d: [one.append(one[-1]) for rank in ranks(d) for one in rank["samples"].values()],
            "round 0, rank 1: the number of iteration_time_s",
        ),
        (lambda d: set_item(column(d, "learning_time_s"), 7, None), "round 0, rank 1: learning_time_s"),
        (lambda d: rounds(d)[0]["ranks"][0].update(parameters_sha256=None), "round 0, rank 0: parameters_sha256"),
        (lambda d: rounds(d)[0]["ranks"][0].update(parameters_sha256="0" * 64), "round 0: the ranks' parameters"),
        (lambda d: rounds(d)[0]["ranks"][1].update(validity=[FAILED]), "round 0, rank 1: camera form"),
        (lambda d: rounds(d)[0].update(exit_code=1), "round 0: exit_code"),
        (lambda d: set_item(column(d, "iteration_time_s"), 9, 5.0), "round 0, rank 1: iteration 9 of 5 s"),
        (lambda d: scale(column(d, "learning_time_s"), -1.0), "round 0, rank 1: learning_time_s of iteration"),
        (lambda d: scale(column(d, "all_reduce_time_s"), 99.0), "round 0, rank 1: all_reduce_time_s of iteration"),
        (lambda d: scale(column(d, "iteration_time_s"), 0.5), "collection_time_s of iteration"),
        (lambda d: scale(column(d, "iteration_time_s"), 0.97), "stats.data[0]"),
        (lambda d: rounds(d)[2].update(outcome="crashed", reason=None), "the reason of round 2, crashed,"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_damage_in_a_case_is_named(tmp_path: Path, change: Damage, what: str) -> None:
    found = damaged_case(PAIRS / CASE, change, tmp_path)
    assert any(what in finding.what for finding in found), found
    assert all(finding.got != finding.expected and finding.next_step for finding in found)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: set_item(d["labscale"], "schema_version", 99), "schema_version is 99"),
        (lambda d: set_item(column(d, "iteration_time_s"), 3, "fast"), "iteration_time_s is not a list of numbers"),
        (lambda d: ranks(d)[0].update(validity=[{**FAILED, "verdict": "okx"}]), "verdict is 'okx', expected ok or"),
        (lambda d: rounds(d)[0].update(outcome="done"), "outcome is 'done', expected completed or"),
        (lambda d: d["labscale"]["configuration"].update(scaling="fast"), "scaling is 'fast', expected strong"),
        (lambda d: d.pop("labscale"), "missing: 'labscale'"),
        (lambda d: rounds(d)[0].update(machine=7), "machine is 7, there are 1"),
        (lambda d: d.pop("benchmarks"), "missing: 'benchmarks'"),
        (lambda d: d.update(benchmarks=[1]), "not valid"),
        (lambda d: d["benchmarks"][0].update(extra_info=[]), "not valid"),
        (lambda d: rounds(d)[1].update(started_utc="2026-13-21T10:00:00Z"), "started_utc is '2026-13-21T10:00:00Z'"),
        (lambda d: rounds(d)[0].update(wall_time_s=float("nan")), "NaN is no number of JSON"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_is_not_of_the_format_is_named(tmp_path: Path, change: Damage, said: str) -> None:
    (finding, *_) = damaged_case(TWO_GPUS, change, tmp_path)
    assert finding.what == "the file"
    assert said in finding.got


def test_a_field_that_is_there_twice_is_named(tmp_path: Path) -> None:
    path = tmp_path / CASE
    path.parent.mkdir(parents=True)
    path.write_text((PAIRS / CASE).read_text().replace('"benchmarks": [', '"datetime": "x", "benchmarks": [', 1))
    assert "the field datetime is there twice" in read_case(path, CASE)[1][0].got


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: ranks(d)[1]["settings"].update(seed=42), "rank 1: settings.seed"),
        (lambda d: ranks(d)[1]["settings"].update(num_envs=1024), "rank 1: settings.num_envs"),
        (lambda d: ranks(d)[1]["settings"].update(decimation=1), "rank 1: settings.decimation"),
        (lambda d: ranks(d)[1]["settings"].update(cuda_graph=True), "rank 1: settings.cuda_graph"),
        (lambda d: ranks(d)[1]["settings"].update(physics_dt_s=0.01), "rank 1: settings.physics_dt_s"),
        (lambda d: ranks(d)[1]["settings"].update(torch_num_threads=3), "rank 1: settings.torch_num_threads"),
        (lambda d: column(d, "marked").pop(), "round 0"),
        (lambda d: ranks(d)[1]["settings"].update(device="cuda:0"), "rank 1: settings.device"),
        (lambda d: rounds(d)[0]["workload"].update(task="Isaac-Ant"), "workload.task"),
        (lambda d: rounds(d)[0]["workload"].update(minibatch_size=1), "workload.minibatch_size"),
        (lambda d: rounds(d)[0]["workload"].update(num_steps_per_env=1), "workload.num_steps_per_env"),
        (lambda d: rounds(d)[0]["workload"].update(optimiser_steps=1), "workload.optimiser_steps"),
        (lambda d: ranks(d)[1].update(local_rank=0), "rank 1: local_rank"),
        (lambda d: ranks(d)[1].update(node=1), "the nodes of the ranks"),
        (lambda d: ranks(d)[1].update(peak_memory_gb=160.0), "rank 1: peak_memory_gb"),
        (lambda d: ranks(d)[1]["phases_s"].update(imports=-1.0), "rank 1: phases_s.imports"),
        (lambda d: ranks(d)[1]["phases_s"].update(imports=60.0), "rank 1: wall_time_s around"),
        (lambda d: rounds(d)[0].update(wall_time_s=60.0), "rank 0: wall_time_s around"),
        (lambda d: rounds(d)[0]["transport"].update(unread_lines=-1), "transport.unread_lines"),
        (lambda d: rounds(d)[0]["transport"]["routes"][0].update(pairs=3), "transport.routes[0].pairs"),
        (lambda d: rounds(d)[0]["transport"]["routes"][0].update(channels=1), "transport.routes[0].channels"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_facts_of_a_round_are_held_to_its_case(tmp_path: Path, change: Damage, what: str) -> None:
    assert any(what in finding.what for finding in damaged_case(TWO_GPUS, change, tmp_path))


def as_cold(document: Any) -> None:
    """Make it a case whose rounds began with an empty kernel cache, as labscale stores it."""
    case = document["labscale"]["configuration"]
    case.update(configuration_id=f"{case['configuration_id']}-cold", kernel_cache="empty")
    document["benchmarks"][0]["param"] = case["configuration_id"]
    for rank in (rank for one in rounds(document) for rank in one["ranks"]):
        rank.update(kernels_compiled=9 if rank["rank"] == 0 else None, warp_modules_compiled=3, warp_compile_time_s=8.5)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda _: None, None),
        (lambda d: ranks(d)[1].update(warp_modules_compiled=None, warp_compile_time_s=None), None),
        (lambda d: ranks(d)[1].update(warp_modules_compiled=0, warp_compile_time_s=0), None),
        (lambda d: ranks(d)[0].update(kernels_compiled=0), "kernels_compiled of a round that began with an empty"),
        (lambda d: ranks(d)[0].update(warp_compile_time_s=-1.0), "rank 0: warp_compile_time_s"),
        (lambda d: ranks(d)[0].update(warp_compile_time_s=None), "warp_compile_time_s beside warp_modules_compiled"),
        (lambda d: ranks(d)[0].update(warp_modules_compiled=0), "warp_compile_time_s beside warp_modules_compiled"),
        (lambda d: ranks(d)[0].update(warp_compile_time_s=0), "warp_compile_time_s beside warp_modules_compiled"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_cold_start_is_held_to_what_it_compiled(tmp_path: Path, change: Damage, what: str | None) -> None:
    def cold(document: Any) -> None:
        as_cold(document)
        change(document)

    found = [finding for finding in damaged_case(TWO_GPUS, cold, tmp_path) if finding.what != "the file's name"]
    if what is None:
        assert found == []
    else:
        assert [what in finding.what for finding in found] == [True]


def test_the_id_of_a_case_says_whether_its_kernel_cache_is_empty(tmp_path: Path) -> None:
    def kept(document: Any) -> None:
        as_cold(document)
        document["labscale"]["configuration"]["kernel_cache"] = "kept"

    found = damaged_case(TWO_GPUS, kept, tmp_path)
    assert "case.kernel_cache, which its id says," in [finding.what for finding in found]


def test_with_a_seed_for_each_round_every_round_is_held_to_its_own(tmp_path: Path) -> None:
    found = damaged_case(SEEDS, one_seed_for_all_rounds, tmp_path)
    said = [(finding.what, finding.got, finding.expected) for finding in found if "settings" in finding.what]
    assert said == [(f"round {number}, rank 0: settings.seed", str(1 + number), "1") for number in (1, 2, 3)]


def one_seed_for_all_rounds(document: Any) -> None:
    document["labscale"]["configuration"]["seed_per_run"] = False


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: set_item(rounds(d)[0]["clocks"][0], "node", 0), "the nodes of clocks"),
        (lambda d: set_item(rounds(d)[0]["clocks"][0], "bound_s", 1e-6), "the clock of node 1: bound_s"),
        (lambda d: set_item(rounds(d)[0]["clocks"][0], "drift_s", 1e-3), "the clock of node 1: bound_s"),
        (lambda d: set_item(rounds(d)[0]["clocks"][0], "offset_s", 1e-3), "the clock of node 1: offset_s"),
        (lambda d: ranks(d)[1].update(node=0), "the nodes of the ranks"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_clocks_of_nodes_are_held_to_their_bounds(tmp_path: Path, change: Damage, what: str) -> None:
    assert any(f"round 0: {what}" in finding.what for finding in damaged_case(TWO_NODES, change, tmp_path))


def test_only_the_rank_that_simulates_has_a_cuda_graph_in_a_pipeline() -> None:
    stored = json.loads(PIPELINE.read_text(encoding="utf-8"))
    assert [rank["settings"]["cuda_graph"] for rank in ranks(stored)] == [False, True]


def test_gpus_of_several_kinds_and_a_clock_that_was_not_measured_are_no_damage(tmp_path: Path) -> None:
    assert damaged_case(TWO_GPUS, lambda d: ranks(d)[1]["settings"].update(gpu_name="Another"), tmp_path) == []
    assert damaged_case(TWO_NODES, lambda d: rounds(d)[0].update(clocks=[]), tmp_path) == []


def test_rounds_of_different_work_are_named(tmp_path: Path) -> None:
    found = damaged_case(TWO_GPUS, lambda d: rounds(d)[1]["workload"].update({"env.scene": "other"}), tmp_path)
    assert [finding.what for finding in found] == ["the workload's fingerprint"]


def test_a_case_whose_rounds_were_skipped_needs_no_figures(tmp_path: Path) -> None:
    skipped = VERSION / "h200-x4-rsl/cases/ant-weak/rsl_rl-kitless-n4096-2x2.json"
    assert damaged_case(skipped, lambda _: None, tmp_path) == []
    found = damaged_case(skipped, lambda d: rounds(d)[0].update(reason=""), tmp_path)
    assert [finding.what for finding in found] == ["the reason of round 0, skipped,"]


@pytest.mark.parametrize("is_set", [True, False])
def test_a_deterministic_case_is_held_to_the_settings_of_its_ranks(tmp_path: Path, *, is_set: bool) -> None:
    def change(document: Any) -> None:
        document["labscale"]["configuration"]["deterministic"] = True
        for rank in (rank for one in rounds(document) for rank in one["ranks"]):
            rank["settings"] |= {"deterministic_algorithms": is_set, "cublas_workspace_config": None}

    found = [one.what for one in damaged_case(SEEDS, change, tmp_path) if "settings.deterministic" in one.what]
    assert found == (
        [] if is_set else [f"round {number}, rank 0: settings.deterministic_algorithms" for number in range(4)]
    )


@pytest.mark.parametrize("there", ["1.8.0", "1.6.1"])
def test_a_case_with_packages_is_held_to_the_versions_of_its_ranks(tmp_path: Path, there: str) -> None:
    def change(document: Any) -> None:
        document["labscale"]["configuration"]["with_packages"] = ["newton==1.8.0"]
        for rank in (rank for one in rounds(document) for rank in one["ranks"]):
            rank["settings"]["versions.newton"] = there

    found = [one.what for one in damaged_case(SEEDS, change, tmp_path) if "versions.newton" in one.what]
    wrong = [f"round {number}, rank 0: settings.versions.newton" for number in range(4)]
    assert found == ([] if there == "1.8.0" else wrong)
