"""Telemetry, damaged: what the sampler saw of a round is compared with the round, and with itself."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.results.damaged_results import (
    IN_TURNS,
    TWO_GPUS,
    TWO_NODES,
    Damage,
    damaged_case,
    ranks,
    rounds,
    telemetry,
)


@pytest.mark.parametrize(
    ("name", "damaged_to"), [("energy_j", 7.0), ("energy_j", None), ("window_s", 7.0), ("frames_per_joule", 7.0)]
)
def test_a_figure_of_the_whole_round_follows_from_its_parts(
    tmp_path: Path, name: str, damaged_to: float | None
) -> None:
    found = damaged_case(TWO_GPUS, lambda stored: telemetry(stored).update({name: damaged_to}), tmp_path)
    assert any(finding.what == f"round 0, telemetry.{name}" for finding in found)


def test_an_energy_is_that_of_its_gpus_if_nodes_are_missing_too(tmp_path: Path) -> None:
    for energy_j, is_named in ((7.0, True), (None, False)):  # it may say nothing of all GPUs, and nothing false

        def lose_a_node(stored: Any, energy_j: float | None = energy_j) -> None:
            telemetry(stored).update(missing_nodes=[1], energy_j=energy_j, energy_agrees=None, frames_per_joule=None)

        found = damaged_case(TWO_GPUS, lose_a_node, tmp_path)
        assert any("energy_j" in finding.what for finding in found) == is_named


@pytest.mark.parametrize(
    ("of_gpu", "of_all", "named"),
    [
        (1.0, 1.0, []),
        (0.995, 1.0, []),  # the mean of readings, as earlier versions stored it
        (0.98, 1.0, ["gpus[1].power_w.mean"]),
        (1.0, 1.02, ["power_w.mean"]),
    ],
)
def test_a_mean_power_is_energy_over_time(tmp_path: Path, of_gpu: float, of_all: float, named: list[str]) -> None:
    def change(stored: Any) -> None:
        telemetry(stored)["gpus"][1]["power_w"]["mean"] *= of_gpu
        telemetry(stored)["power_w"]["mean"] *= of_all

    found = damaged_case(TWO_GPUS, change, tmp_path)
    assert [finding.what for finding in found] == [f"round 0, telemetry.{name}" for name in named]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.update(window_start_unix_s=t["window_start_unix_s"] + 200), ".window_start_unix_s after"),
        (lambda t: t.update(window_start_unix_s=t["window_start_unix_s"] - 200), ".window_start_unix_s after"),
        (lambda t: t.update(num_samples=308), ".num_samples"),
        (lambda t: t.update(num_samples=20), ".num_samples"),
        (lambda t: t.update(rate_hz=4.5), ".num_samples"),
        (lambda t: t.update(sample_time_mean_s=0.19), ".sample_time_mean_s"),
        (lambda t: t.update(sample_time_mean_s=0.3, sample_time_max_s=0.3), ": all sample times"),
        (lambda t: t.update(sampler_cpu_share=-0.1), ".sampler_cpu_share"),
        (lambda t: t.update(energy_agrees=False), ".energy_agrees"),
        (lambda t: t["gpus"][1].update(energy_disagreement=-0.001), ".gpus[1].energy_disagreement"),
        (lambda t: t["gpus"][1].update(energy_counter_j=None), ".gpus[1].energy_disagreement"),
        (lambda t: t.update(gpus=[]), ".energy_j"),
        (lambda t: t.update(gpus=[]), ".energy_agrees"),
        (lambda t: t.update(gpus=[]), ".power_w"),
        (lambda t: t["gpus"][1].update(energy_counter_j=None, energy_integrated_j=None), ".energy_j"),
        (lambda t: t["gpus"][1].update(power_w=None), ".power_w"),
        (lambda t: t.update(energy_j=None), ".frames_per_joule"),
        (lambda t: t.update(frames_per_joule=None), ".frames_per_joule"),
        (lambda t: t["gpus"][1].update(throttled_share=0.1), ".gpus[1].throttled_share"),
        (lambda t: t["gpus"][1].update(slowdown_shares={"power_cap": 0.1}), ".gpus[1].throttled_share"),
        (lambda t: t["gpus"][1].update(slowdown_shares={"idle": 1.1}), ".gpus[1].slowdown_shares.idle"),
        (lambda t: t["gpus"][1].update(index=0), ": (node, index) of the GPUs"),
        (lambda t: t["gpus"][1].update(node=1), ": (node, index) of the GPUs"),
        (lambda t: t["gpus"][1]["memory_used_gb"].update(max=160.0), ".gpus[1].memory_used_gb.max"),
        (lambda t: t["gpus"][1]["sm_clock_mhz"].update(mean=1782.0), ".gpus[1].sm_clock_mhz.mean"),
        (lambda t: t["gpus"][1]["temperature_c"].update(max=38.0), ".gpus[1].temperature_c.mean"),
        (lambda t: t["gpus"][1]["sm_utilisation_percent"].update(max=110.0), ".gpus[1].sm_utilisation_percent.max"),
        (lambda t: t["gpus"][1]["power_w"].update(max=200.0), ".power_w.max"),
        (lambda t: t["gpus"][1]["power_w"].update(min=242.7), ".power_w.min"),
        (lambda t: t["power_w"].update(max=500.0), ".power_w.max"),
        (lambda t: t["power_w"].update(min=300.0), ".power_w.min"),
        (lambda t: t["power_w"].update(min=430.0), ".power_w.min"),
        (lambda t: t["power_w"].update(max=420.0), ".power_w.max"),
        (lambda t: t["ranks"][1].update(rank=0), ": the ranks"),
        (lambda t: t["ranks"][1].update(rank=2), ": the ranks"),
        (lambda t: t["ranks"][1]["threads"].update(mean=80.0), ".ranks[1].threads.mean"),
        (lambda t: t["ranks"][1]["memory_gb"].update(max=3000.0), ".ranks[1].memory_gb.max"),
        (lambda t: t["host_load"].update(min=50.0), ".host_load.mean"),
        (lambda t: t["host_stolen_percent"].update(mean=50.0, max=50.0), ".host_stolen_percent.mean"),
        (lambda t: t.update(host_others_percent=50.0), ".host_others_percent"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_figures_of_a_sampler_are_held_to_each_other(tmp_path: Path, change: Damage, what: str) -> None:
    found = damaged_case(TWO_GPUS, lambda stored: change(telemetry(stored)), tmp_path)
    start = f"round 0: telemetry{what}" if "window_start" in what else f"round 0, telemetry{what}"
    assert any(one.what.startswith(start) for one in found), found


@pytest.mark.parametrize(("kind", "is_more"), [("NVIDIA B200", False), ("NVIDIA H200", True)])
def test_a_gpu_of_another_node_may_be_larger(tmp_path: Path, kind: str, is_more: bool) -> None:
    """One node is looked at; pods and rounds started by hand may have nodes of other kinds."""

    def enlarge(stored: Any) -> None:
        rank = ranks(stored)[1]
        rank["settings"]["gpu_name"] = kind
        rank["peak_memory_gb"] = telemetry(stored)["gpus"][1]["memory_used_gb"]["max"] = 180.0

    names = {one.what for one in damaged_case(TWO_NODES, enlarge, tmp_path)}
    assert names == (
        {"round 0, rank 1: peak_memory_gb", "round 0, telemetry.gpus[1].memory_used_gb.max"} if is_more else set()
    )


def test_a_host_may_use_more_than_the_limit_of_a_job_on_it(tmp_path: Path) -> None:
    def limited(stored: dict[str, Any]) -> None:
        for record in stored["labscale"]["runs"]:
            used_gb = record["telemetry"]["host_memory_used_gb"]["min"]
            assert max(rank["memory_gb"]["max"] for rank in record["telemetry"]["ranks"]) < 5.0 < used_gb
        for machine in stored["labscale"]["machines"]:
            machine["memory_gb"] = 5.0

    found = damaged_case(TWO_GPUS, limited, tmp_path)
    assert not [one for one in found if "memory" in one.what]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t["nodes"][1].update(energy_j=300.0), ".nodes[1].energy_j"),
        (lambda t: t["nodes"][1]["power_w"].update(mean=110.0), ".nodes[1].power_w.mean"),
        (lambda t: t["nodes"][1]["power_w"].update(min=110.0), ".nodes[1].power_w.min"),
        (lambda t: t["nodes"][1]["power_w"].update(max=140.0), ".nodes[1].power_w.max"),
        (lambda t: t["gpus"][1].update(node=0), ".nodes[1].power_w"),
        (lambda t: t["nodes"][1].update(node=0), ": nodes, seen and missing,"),
        (lambda t: t["nodes"][1].update(num_samples=15), ".num_samples"),
        (lambda t: t["nodes"][1]["host_cpu_percent"].update(max=99.0), ".host_cpu_percent.max"),
        (lambda t: t["nodes"][1]["host_load"].update(min=0.1), ".host_load.min"),
        (lambda t: t["host_memory_used_gb"].update(max=6.0), ".host_memory_used_gb.max"),
        (lambda t: t["power_w"].update(max=400.0), ".power_w.max"),
        (lambda t: t.update(missing_nodes=[2]), ": nodes, seen and missing,"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_figures_of_all_nodes_follow_from_each(tmp_path: Path, change: Damage, what: str) -> None:
    found = damaged_case(TWO_NODES, lambda stored: change(telemetry(stored)), tmp_path)
    assert f"round 0, telemetry{what}" in {one.what for one in found}


def test_each_turn_of_a_round_may_have_a_sample_at_both_of_its_ends(tmp_path: Path) -> None:
    def at_most(stored: Any, *, more: int) -> None:
        seen, turns = telemetry(stored), rounds(stored)[0]["turns"]["turns"]
        seen["num_samples"] = int(seen["rate_hz"] * seen["window_s"] + 1) + turns + more

    assert damaged_case(IN_TURNS, lambda stored: at_most(stored, more=0), tmp_path) == []
    found = damaged_case(IN_TURNS, lambda stored: at_most(stored, more=1), tmp_path)
    assert "round 0, telemetry.num_samples" in {one.what for one in found}
