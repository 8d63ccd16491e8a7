"""A real campaign on the CPU whose cases have different versions of Newton."""

from pathlib import Path

import pytest

from reports.verification.finding import Place
from reports.verification.stored import read_case
from suite.__main__ import main
from suite.install.worker import Worker
from suite.install.worker_packages import digest_of
from suite.records.store import load_results
from tasks.rank.kernel_cache import compiled_kernels
from tests.fixtures.runs.real_runs import cartpole, matrix_of

OTHER = ("newton==1.6.0",)
MATRIX = matrix_of(cartpole("rsl_rl"), cartpole("rsl_rl", division="open", variant="newton-1-6-0", with_packages=OTHER))


@pytest.mark.worker
@pytest.mark.slow
def test_cases_with_two_versions_of_newton_run_beside_each_other(
    worker: Worker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    matrix, out = tmp_path / "newtons.toml", tmp_path / "out"
    matrix.write_text(MATRIX, encoding="utf-8")
    main(["bench", "--matrix", str(matrix), "--device", "cpu", "--out", str(out), "--no-report"])  # 20 on a busy host
    records = {result.case.with_packages: result.rounds[0] for result in load_results(out)}
    assert {record.outcome for record in records.values()} == {"completed"}, capsys.readouterr().out
    shipped, other = (records[packages].ranks[0].settings for packages in ((), OTHER))
    assert (shipped["versions.newton"], other["versions.newton"]) == ("1.6.1", "1.6.0")
    differing = {name for name in shipped if name.startswith("versions.") and shipped[name] != other[name]}
    assert differing == {"versions.newton"}
    assert records[()].workload == records[OTHER].workload
    environments = {record.environment.asset_sha256 for record in records.values()}
    assert environments == {worker.asset_sha256}
    own = worker.cache_dir.with_name(f"{worker.cache_dir.name}-versions-{digest_of(OTHER)}")
    assert compiled_kernels({"WARP_CACHE_PATH": str(own / "warp")})
    for path in sorted((out / "cases").rglob("*.json")):
        place = Place(out).at(path)
        assert read_case(place, out)
        assert place.findings == []
