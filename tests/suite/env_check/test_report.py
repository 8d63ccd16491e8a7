"""env_check as a whole, on the machine that runs the tests, and what it said on H200s."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest
from rich.console import Console

from suite import __main__
from suite.env_check import host, libraries
from suite.env_check import report as all_checks
from suite.env_check.display import print_faults, print_report
from suite.env_check.report import CHECKS, Machine, Report, checks_of, env_check, read_report, summarised
from suite.env_check.request import Request
from suite.external.nvml.gpus import read_gpus
from suite.files.cache import cache_root
from suite.files.paths import ROOT

HAS_GPU = bool(read_gpus()[0])
without_gpu = pytest.mark.skipif(HAS_GPU, reason="this machine has an NVIDIA GPU")

FOLDER: Final = ROOT / "reports" / "results" / "2026.11" / "env_check"
PAGE: Final = ROOT / "book" / "run" / "env-check.md"


@pytest.fixture(scope="module")
def report(this_machine: Machine) -> Report:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_checks, "look", lambda *_: this_machine)
        return env_check(Request(device="cpu"))


def shown(report: Report) -> str:
    console = Console(width=200, file=io.StringIO(), record=True)
    print_report(console, report)
    return console.export_text()


def test_this_machine_can_run_the_default_stack_on_its_cpu(report: Report) -> None:
    assert (report.failures, report.unproved, report.device) == ((), (), "cpu")
    assert report.exit_code in (0, 1)
    assert "can run here on cpu" in shown(report)


def test_check_names_are_unique_and_every_needed_one_was_looked_at(report: Report) -> None:
    names = [check.name for check in report.checks]
    assert len(names) == len(set(names)) >= 40
    looked_at = {check.name for check in report.checks if check.verdict != "not_checked"}
    assert {"libc", "nofile", "cache_disk"} <= looked_at


@pytest.fixture
def quick_look(this_machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have what takes long to read from the look that all tests share."""
    monkeypatch.setenv("LABSCALE_CACHE", str(tmp_path))
    monkeypatch.setattr(all_checks, "read_graphics", lambda *_, **__: this_machine.graphics)
    monkeypatch.setattr(host, "read_load", lambda: this_machine.load)
    monkeypatch.setattr(libraries, "read_driver_libraries", lambda *_, **__: this_machine.libraries)


@pytest.mark.usefixtures("quick_look")
def test_nothing_is_rendered_that_is_not_needed() -> None:
    rendered = {"egl_vendors", "egl_devices", "egl_frame"}
    rendered |= {"vulkan_manifests", "vulkan_devices", "vulkan_frame", "vulkan_ray_tracing"}
    names = {check.name for check in env_check(Request(device="cpu", everything=False)).checks}
    assert {row.name for row in CHECKS} - names == rendered
    needed = Request(device="cpu", require=("vulkan",), everything=False)
    assert {check.name for check in env_check(needed).checks} >= rendered


def test_a_machine_without_a_gpu_says_what_one_would_add(report: Report) -> None:
    (gpus,) = (check for check in report.checks if check.name == "gpus_present")
    assert (gpus.verdict, gpus.fault) == ("not_needed", "no_gpu")
    assert "no NVIDIA GPU" in shown(report)
    assert "with one GPU what needs one runs" in shown(report)


@without_gpu
@pytest.mark.parametrize(
    ("arguments", "names"),
    [(("--stack", "ovphysx"), ("gpus_present",)), (("--require", "cuda,vulkan,egl"), ("vulkan_frame", "egl_frame"))],
)
@pytest.mark.usefixtures("quick_look")
def test_asking_for_what_is_absent_fails_with_its_name(
    arguments: tuple[str, ...], names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert __main__.main(["env_check", "--json", *arguments]) == 2
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["gpus_present"]["fault"] == "no_gpu"
    for name in names:
        assert checks[name]["verdict"] == "failure"
        assert checks[name]["repair"]


def test_a_driver_is_judged_for_the_release_of_isaac_sim_that_is_there(this_machine: Machine) -> None:
    with_driver = replace(this_machine.driver, kernel_version="595.71.05")
    for release, fault in (("5.1.0", "driver_known_bad"), ("6.2.0.0", None), (None, None)):
        there = replace(this_machine.worker, isaac_sim=release)
        checks = checks_of(replace(this_machine, stack="isaacsim", driver=with_driver, worker=there))
        assert [check.fault for check in checks if check.name == "driver_for_stack"] == [fault]


def test_json_is_what_other_nodes_send(report: Report) -> None:
    sent = read_report(report.as_json())
    assert (sent.host, sent.stack) == (report.host, "kitless")
    assert [check.fault for check in sent.checks] == [check.fault for check in report.checks]
    evidence = {check.name: check.evidence for check in sent.checks}
    assert evidence["libc"]["values"]["libc_version"]


def test_records_keep_no_folder_of_this_machine(report: Report) -> None:
    kept = summarised(report)
    assert len(kept) == len(report.checks)
    texts = " ".join(check.found for check in kept)
    assert str(cache_root()) not in texts
    assert str(ROOT) not in texts
    assert str(Path.home()) not in texts


def test_a_fault_of_what_is_needed_is_shown_with_its_repair(report: Report) -> None:
    (libc,) = (check for check in report.checks if check.name == "libc")
    broken = replace(libc, verdict="failure", fault="glibc_too_old", repair="Use Debian 12.")
    faulty = replace(report, checks=(broken,))
    assert faulty.exit_code == 2
    console = Console(width=200, file=io.StringIO(), record=True)
    print_faults(console, faulty)
    text = console.export_text()
    assert "1 of 1 check found a fault" in text
    assert "glibc_too_old" in text
    assert "Use Debian 12." in text
    assert "cannot run here" in shown(faulty)


def test_nodes_without_an_allocation_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    assert __main__.main(["env_check", "--nodes"]) == 11
    assert "--nodes host1,host2" in capsys.readouterr().err


def test_what_the_page_says_of_its_example_holds() -> None:
    report = read_report((FOLDER / "h200-x2.json").read_text(encoding="utf-8"))
    nccl = next(check for check in report.checks if check.name == "nccl_all_reduce")
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{len(report.checks)} checks in {report.duration_s:.1f} s" in page
    assert f"{nccl.evidence['result']['bus_bandwidth_gb_s']:.0f} GB/s" in page
