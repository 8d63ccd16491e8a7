"""Real starts of Cartpole on the CPU: one without compiled kernels, and one with those of earlier runs."""

import shutil
from pathlib import Path

import pytest

from suite.launch.watch import prepare
from suite.matrix.plan import EMPTY_CACHE
from suite.records.collect import workload_differences
from suite.statistics.start_up import start_up
from tasks.rank.kernel_cache import compiled_kernels
from tests.fixtures.runs.trained_runs import TrainedRun

pytestmark = pytest.mark.worker


def test_a_cold_start_compiles_everything_in_a_cache_of_its_own_and_a_warm_one_nothing(
    trained_run: TrainedRun, tmp_path: Path
) -> None:
    """Both are runs that others look at too."""
    cold_run, warm_run = trained_run("sb3-1x1"), trained_run("torchrl-1x1")
    cold, warm = (run.record.ranks[0] for run in (cold_run, warm_run))
    workloads = [run.record.workload or {} for run in (cold_run, warm_run)]
    differing = [text.partition(":")[0] for text in workload_differences(*workloads)]
    # Their assets are in different folders. The pole's description, which names its file, is one hash.
    assert [name for name in differing if name.startswith("env.")] == ["env.compute_final_obs"]
    assert "env.scene.cartpole" in workloads[0]

    own = compiled_kernels({"WARP_CACHE_PATH": str(cold_run.run_dir / EMPTY_CACHE)})
    assert own
    assert not {path.name for path in own} & {path.name for path in cold_run.newly_kept}
    assert cold.kernels_compiled == len(own)
    assert cold.warp_modules_compiled == len(own)  # on a CPU there is no other compiler
    # Kernels are counted in the cache, where another test may have put some meanwhile; modules are the process's own.
    assert (warm.warp_modules_compiled, warm.warp_compile_time_s) == (0, 0.0)

    assert cold.warp_compile_time_s is not None
    assert 1.0 < cold.warp_compile_time_s < start_up(cold_run.record).total_s

    again = shutil.copytree(cold_run.run_dir, tmp_path / "again")  # others look at the run
    prepare(again, cold_run.case)  # as for another attempt, which must start as cold
    assert not (again / EMPTY_CACHE).exists()
