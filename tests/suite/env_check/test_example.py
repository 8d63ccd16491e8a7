"""What env_check said on H200s stays readable and complete as the checks go on."""

import json
from pathlib import Path

import pytest

from suite.env_check.report import Report, env_check, read_report
from suite.env_check.request import Request

FOLDER = Path(__file__).resolve().parents[3] / "reports" / "results" / "2026.11" / "env_check"
PAGE = FOLDER.parents[3] / "book" / "run" / "env-check.md"


def example(name: str) -> Report:
    return read_report((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def names() -> list[str]:
    return [check.name for check in env_check(Request(device="cpu")).checks]


# Checks that labscale made later than the examples; they are no longer missing when the examples are made again.
SINCE_THE_LATEST = ("cpu_load", "cuda_graphs", "cuda_start", "denoiser", "kernel_cache")
SINCE_THEN = ("core_speed", *SINCE_THE_LATEST)


@pytest.mark.parametrize("name", ["h200-x2", "h200-x2-without-loaders"])
def test_the_examples_have_every_check_of_their_time(name: str, names: list[str]) -> None:
    there = [check.name for check in example(name).checks]
    assert there == [known for known in names if known not in SINCE_THEN]


def test_the_latest_example_has_every_check_and_its_host_was_shared(names: list[str]) -> None:
    checks = {check.name: check for check in example("h200-one").checks}
    assert list(checks) == [name for name in names if name not in SINCE_THE_LATEST]
    assert {name for name, check in checks.items() if check.verdict == "warning"} == {"core_speed"}
    assert "over 1.3 times that" in checks["core_speed"].found


def test_two_h200s_with_the_loaders_lack_nothing_but_rt_cores() -> None:
    """--require egl,vulkan,nccl,rt-cores"""
    faults = {check.name: check.fault for check in example("h200-x2").checks if check.verdict == "failure"}
    assert faults == {"vulkan_ray_tracing": "no_ray_tracing", "rt_cores": "no_rt_cores"}
    found = {check.name: check.found for check in example("h200-x2").checks}
    assert found["egl_frame"].startswith("64x64 pixels right, by NVIDIA Corporation NVIDIA H200")
    assert found["vulkan_frame"].startswith("64x64 pixels right, by NVIDIA H200")


def test_without_the_loaders_each_missing_library_is_named_with_its_package() -> None:
    repairs = {check.name: check.repair for check in example("h200-x2-without-loaders").checks if check.fault}
    assert repairs["libgl"] == "apt-get install libgl1 (it holds libGL.so.1)"
    assert repairs["egl_loader"] == "apt-get install libegl1 (it holds libEGL.so.1)"
    assert repairs["vulkan_loader"] == "apt-get install libvulkan1 (it holds libvulkan.so.1)"


def test_what_the_page_says_of_these_examples_holds() -> None:
    duration_s = json.loads((FOLDER / "h200-x2.json").read_text(encoding="utf-8"))["duration_s"]
    nccl = next(check for check in example("h200-x2").checks if check.name == "nccl_all_reduce")
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{len(example('h200-x2').checks)} checks in {duration_s:.1f} s" in page
    assert f"{nccl.evidence['result']['bus_bandwidth_gb_s']:.0f} GB/s" in page
