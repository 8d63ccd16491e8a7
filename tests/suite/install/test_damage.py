"""Damaged modules in Warp's cache are found, moved away and said; everything else there stays."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from suite.env_check import worker as kernel_cache
from suite.errors import WorkerEnvironmentError
from suite.install.damage import DAMAGED, damaged_modules, modules, set_damaged_aside
from tests.fixtures.runs.simulated_campaign import NARROW, campaign_of, printed, run_all
from tests.fixtures.runs.simulated_host import SimulatedHost

PTX = ".version 8.8\n.target sm_90\n.address_size 64\n\n.visible .entry k()\n{\n\tret;\n\n}\n\n\0"
ELF = Path("/bin/true").read_bytes()  # ends with its table of sections, as Warp's object files do


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """A module for CPUs and GPUs as Warp leaves it, beside one that a process is writing."""
    folder = tmp_path / "warp/1.17.0/wp_solver_a1b2c3d"
    folder.mkdir(parents=True)
    (folder / "wp_solver_a1b2c3d.meta").write_text(json.dumps({"k_cuda_kernel_forward_smem_bytes": 0}))
    (folder / "wp_solver_a1b2c3d.cpu5d585e52.o").write_bytes(ELF)
    (folder / "wp_solver_a1b2c3d.sm90.cubin").write_bytes(ELF)
    (folder / "wp_solver_a1b2c3d.sm90.ptx").write_text(PTX)
    (folder / "wp_solver_a1b2c3d.cu").write_text("{")
    being_written = folder.with_name("wp_sensor_0123456_p4242_t139872")
    being_written.mkdir()
    (being_written / "wp_sensor_0123456.meta").touch()
    return folder


@pytest.mark.parametrize("suffix", [".meta", ".o", ".cubin", ".ptx"])
def test_a_file_that_is_cut_short_or_empty_or_zeros_is_damage(tmp_path: Path, module: Path, suffix: str) -> None:
    assert list(modules(tmp_path)) == [module]
    assert damaged_modules(tmp_path) == {}
    (path,) = module.glob(f"*{suffix}")
    content = path.read_bytes()
    whole = len(content.rstrip(b"\0\n"))
    for length in (0, 1, whole // 2, whole - 1):
        for padding in (b"", b"\0" * (len(content) - length)):
            path.write_bytes(content[:length] + padding)
            if suffix in (".o", ".cubin") and padding and length > 1:
                continue  # what a table of zeros leaves is not seen in every place
            ((folder, problem),) = damaged_modules(tmp_path).items()
            assert (folder, problem.startswith(f"{path.name} is ")) == (module, True)


def test_env_check_names_the_damage_and_its_repair(tmp_path: Path, module: Path) -> None:
    check = kernel_cache.judge_kernel_cache(kernel_cache.read_kernels(tmp_path))
    assert (check.verdict, check.evidence.num_modules) == ("ok", 1)
    (module / "wp_solver_a1b2c3d.meta").write_text("")
    check = kernel_cache.judge_kernel_cache(kernel_cache.read_kernels(tmp_path))
    assert (check.verdict, check.fault) == ("warning", "kernel_cache_damaged")
    assert "wp_solver_a1b2c3d.meta" in check.found
    assert check.repair
    assert kernel_cache.judge_kernel_cache(kernel_cache.read_kernels(tmp_path / "none")).found == "nothing compiled yet"


def test_a_round_moves_damage_away_before_it_starts(tmp_path: Path, module: Path) -> None:
    whole = module.with_name("wp_whole_7654321")
    whole.mkdir()
    (module / "wp_solver_a1b2c3d.meta").write_text('{"k_')
    seen: list[bool] = []
    host = SimulatedHost(wall_s=0, on_start=lambda _: seen.append(module.exists()))
    campaign = campaign_of(host, NARROW[:1], rounds=1)
    runtime = host.runtime()
    cached = replace(runtime, worker=replace(runtime.worker, cache_dir=tmp_path))
    run_all(replace(campaign, runtime=cached), tmp_path / "out")
    assert seen == [False]
    assert str(tmp_path / DAMAGED) in " ".join(printed(campaign).split())
    assert (tmp_path / DAMAGED / module.name / "wp_solver_a1b2c3d.cu").exists()
    assert whole.is_dir()
    module.mkdir()  # the next damage of that module takes the place of the first
    (module / "wp_solver_a1b2c3d.sm90.ptx").write_text("")
    assert [*set_damaged_aside(tmp_path)] == [module]
    assert [path.name for path in (tmp_path / DAMAGED / module.name).iterdir()] == ["wp_solver_a1b2c3d.sm90.ptx"]


def test_damage_that_cannot_be_moved_away_is_an_error(tmp_path: Path, module: Path) -> None:
    (module / "wp_solver_a1b2c3d.meta").write_text("")
    (tmp_path / DAMAGED).touch()
    with pytest.raises(WorkerEnvironmentError, match=r"wp_solver_a1b2c3d\.meta"):
        set_damaged_aside(tmp_path)
