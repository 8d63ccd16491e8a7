"""Stored results name no user, no folder of a machine and no GPU."""

import re
from pathlib import Path

import pytest

RESULTS = Path(__file__).resolve().parents[1] / "reports" / "results"
PRIVATE = re.compile(r"GPU-(?!0000000)[0-9a-f]{8}-[0-9a-f-]{27}|/(?:home|Users)/(?!USER)\w+|/root/")


@pytest.mark.parametrize("folder", sorted(RESULTS.glob("*/*/")), ids=lambda path: path.name)
def test_stored_results_name_no_user_and_no_gpu(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    found = {path.name: PRIVATE.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_rule_finds_them() -> None:
    uuid = "GPU-263da6ff-0123-4567-89ab-0123456789ab"
    assert PRIVATE.findall(f"{uuid} in /home/alice and /root/x") == [uuid, "/home/alice", "/root/"]
    assert PRIVATE.findall("GPU-00000000-0000-0000-0000-000000000000 and GPU-00000001-0000 in /home/USER") == []
