"""Records of rounds that pods run: a folder that is not a round's gets none."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from suite.campaign.record_round import Ended, record
from suite.errors import StoreError
from tests.suite.launch.manifests.test_manifests import NODES


def written(run_dir: Path) -> set[str]:
    return {str(path.relative_to(run_dir)) for path in run_dir.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("case_id", "folder"), [("/".join(["a"] * 5000), "r0"), (NODES.case.case_id, "r00"), (NODES.case.case_id, "other")]
)
def test_a_folder_that_is_not_of_its_case_gets_no_record(case_id: str, folder: str, tmp_path: Path) -> None:
    run_dir = tmp_path / "raw" / NODES.case.case_id / folder
    run_dir.mkdir(parents=True)
    case = replace(NODES.case, case_id=case_id)
    (run_dir / "case.json").write_text(json.dumps(asdict(case)), encoding="utf-8")
    with pytest.raises(StoreError, match=r"is not (where round 0|the directory)"):
        record(run_dir, Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))
    assert written(run_dir) == {"case.json"}


@pytest.mark.parametrize(("nnodes", "why"), [(0, "nnodes: "), (10**10, f"has a case with {2 * 10**10} ranks")])
def test_a_case_that_no_machine_runs_gets_no_record(nnodes: int, why: str, tmp_path: Path) -> None:
    """Looking for each of its ranks took all memory."""
    run_dir = tmp_path / "raw" / NODES.case.case_id / "r0"
    run_dir.mkdir(parents=True)
    (run_dir / "case.json").write_text(json.dumps(asdict(replace(NODES.case, nnodes=nnodes))), encoding="utf-8")
    with pytest.raises(StoreError, match=why):
        record(run_dir, Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))
