"""Real starts of Cartpole on the CPU: one without compiled kernels, and one with those of earlier runs."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.analysis.start_ups import cold_and_warm, median_parts_s
from reports.topics.tasks.start_up import start_up_answer
from suite.install.worker import Worker
from suite.launch.watch import prepare
from suite.matrix.plan import EMPTY_CACHE
from suite.schema.record import CaseResult, Environment
from tasks.rank.kernel_cache import compiled_kernels
from tests.fixtures.runs.real_runs import cartpole, cases_of, launch_of, matrix_of, train

pytestmark = pytest.mark.worker
BOTH = matrix_of(cartpole("rsl_rl", iterations=2, kernel_cache="empty"), cartpole("rsl_rl", iterations=2))


def test_a_cold_start_compiles_everything_in_a_cache_of_its_own_and_a_warm_one_nothing(
    worker: Worker, environment: Environment, tmp_path: Path
) -> None:
    cold_case, warm_case = cases_of(BOTH, tmp_path)
    kept = {"WARP_CACHE_PATH": str(worker.cache_dir / "warp")}
    before = compiled_kernels(kept)
    results = []
    for case in (cold_case, warm_case):
        record = replace(train(launch_of(worker, case, tmp_path / case.case_id), environment), neighbours=0)
        assert (record.outcome, record.reason) == ("completed", None)
        results.append(CaseResult(case=case, rounds=(record,)))
    cold, warm = (result.rounds[0].ranks[0] for result in results)

    assert compiled_kernels(kept) == before, "the cold run used the cache that is kept"
    own = compiled_kernels({"WARP_CACHE_PATH": str(tmp_path / cold_case.case_id / EMPTY_CACHE)})
    assert own is not None
    assert cold.kernels_compiled == len(own)
    assert cold.warp_modules_compiled == len(own)  # on a CPU there is no other compiler
    assert (warm.kernels_compiled, warm.warp_modules_compiled, warm.warp_compile_time_s) == (0, 0, 0.0)

    (both,) = cold_and_warm(results)
    assert cold.warp_compile_time_s is not None
    assert 1.0 < cold.warp_compile_time_s < both.cold[0].total_s
    assert sum(median_parts_s(both.cold).values()) == pytest.approx(both.cold[0].total_s)
    assert both.cold[0].total_s - both.warm[0].total_s > cold.warp_compile_time_s / 2
    said = start_up_answer(results, where="a CPU")
    assert f"; {len(own)} kernels are compiled, and Warp's compiler takes " in said

    prepare(tmp_path / cold_case.case_id, cold_case)  # as for another attempt, which must start as cold
    assert not (tmp_path / cold_case.case_id / EMPTY_CACHE).exists()
