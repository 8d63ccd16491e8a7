"""Records of rounds that pods run: a folder that is not a round's gets none."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from suite.campaign.record_round import Ended, record
from suite.errors import StoreError
from tests.suite.launch.manifests.test_manifests import NODES


@pytest.mark.parametrize(
    ("changes", "folder"),
    [
        ({"case_id": "/".join(["a"] * 5000)}, "r0"),
        ({}, "r00"),
        ({}, "other"),
        ({"nnodes": 0}, "r0"),
        ({"nnodes": 10**10}, "r0"),  # looking for each of its ranks took all memory
    ],
)
def test_a_folder_that_is_not_of_its_case_gets_no_record(
    changes: dict[str, object], folder: str, tmp_path: Path
) -> None:
    run_dir = tmp_path / "raw" / NODES.case.case_id / folder
    run_dir.mkdir(parents=True)
    (run_dir / "case.json").write_text(json.dumps(asdict(NODES.case) | changes), encoding="utf-8")
    with pytest.raises(StoreError):
        record(run_dir, Ended(rounds=1, exit_code=0, started_unix_s=1.7e9))
    assert [path.name for path in run_dir.rglob("*")] == ["case.json"]
