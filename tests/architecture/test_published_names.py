"""Stored results name no GPU by its own number; that no file names a user's folder is a rule of ``test_layering``."""

import re
from pathlib import Path

RESULTS = Path(__file__).resolve().parents[2] / "reports" / "results"
UUID = re.compile(r"GPU-(?!0000000)[0-9a-f]{8}-[0-9a-f-]{27}")


def test_stored_results_name_no_gpu() -> None:
    files = [path for path in RESULTS.glob("*/*/**/*") if path.is_file()]
    assert files
    found = {str(path): UUID.findall(path.read_text(encoding="utf-8")) for path in files}
    assert {path: uuids for path, uuids in found.items() if uuids} == {}
