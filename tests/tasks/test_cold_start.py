"""Real starts of Cartpole on the CPU: one without compiled kernels, and one with those of earlier runs."""

from dataclasses import replace

import pytest

from suite.install.worker import Worker
from suite.launch.watch import prepare
from suite.matrix.plan import EMPTY_CACHE
from suite.statistics.start_up import start_up
from tasks.rank.kernel_cache import compiled_kernels
from tests.fixtures.runs.real_runs import cartpole
from tests.fixtures.runs.trained_runs import TrainedRun, TrainSeries

pytestmark = pytest.mark.worker
COLD = cartpole("sb3", minibatch_size=512, kernel_cache="empty")


def test_a_cold_start_compiles_everything_in_a_cache_of_its_own_and_a_warm_one_nothing(
    worker: Worker, train_series: TrainSeries, trained_run: TrainedRun
) -> None:
    """The warm one is a run that others look at too."""
    warm_run = trained_run("sb3-1x1")
    kept = {"WARP_CACHE_PATH": str(worker.cache_dir / "warp")}
    before = compiled_kernels(kept)
    cold_run = train_series(COLD)
    assert replace(cold_run.case, case_id=warm_run.case.case_id, kernel_cache="kept") == warm_run.case
    cold, warm = (run.record.ranks[0] for run in (cold_run, warm_run))
    # Their assets are in different folders. The pole's description, which names its file, is one hash.
    workload = cold_run.record.workload
    assert workload is not None
    assert workload == warm_run.record.workload
    assert "env.scene.cartpole" in workload

    own = compiled_kernels({"WARP_CACHE_PATH": str(cold_run.run_dir / EMPTY_CACHE)})
    now = compiled_kernels(kept)
    assert own is not None
    assert now is not None
    assert before is not None
    new = {path.name for path in now - before}  # other tests may have compiled what they need
    assert not new & {path.name for path in own}, "the cold run used the cache that is kept"
    assert cold.kernels_compiled == len(own)
    assert cold.warp_modules_compiled == len(own)  # on a CPU there is no other compiler
    # Kernels are counted in the cache, where another test may have put some meanwhile; modules are the process's own.
    assert (warm.warp_modules_compiled, warm.warp_compile_time_s) == (0, 0.0)

    cold_s, warm_s = (start_up(run.record).total_s for run in (cold_run, warm_run))
    assert cold.warp_compile_time_s is not None
    assert 1.0 < cold.warp_compile_time_s < cold_s
    assert cold_s - warm_s > cold.warp_compile_time_s / 2

    prepare(cold_run.run_dir, cold_run.case)  # as for another attempt, which must start as cold
    assert not (cold_run.run_dir / EMPTY_CACHE).exists()
