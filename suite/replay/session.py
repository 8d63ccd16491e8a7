"""Run the replay session in a separate process, and return the checked pytest-benchmark document."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from suite.errors import StoreError
from suite.files.paths import ROOT

_FOLDER: Final = Path(__file__).resolve().parent
_TIMEOUT_S: Final = 300.0
_NEXT_STEP: Final = (
    "Nothing was stored, and the rounds are kept. Run again; if the error stays, report it with the output above."
)


def replay(draft: Mapping[str, Any]) -> dict[str, Any]:
    """Return the pytest-benchmark document of ``draft`` (its keys: see ``suite.replay.conftest``).

    Raises StoreError with the session's output if the session fails or stores other numbers than the draft's.
    """
    with tempfile.TemporaryDirectory(prefix="labscale-replay-") as folder:
        draft_path, document_path = Path(folder, "draft.json"), Path(folder, "document.json")
        draft_path.write_text(json.dumps(draft, allow_nan=False), encoding="utf-8")
        output = _run_session(draft_path, document_path)
        if not document_path.is_file() or not document_path.stat().st_size:
            raise StoreError(f"pytest-benchmark wrote no document for {draft['case_id']}:\n{output}\n{_NEXT_STEP}")
        document: dict[str, Any] = json.loads(document_path.read_text(encoding="utf-8"))
    _check(document, draft)
    return document


def _run_session(draft_path: Path, document_path: Path) -> str:
    # The session must not depend on the user's folder, configuration, plugins and PYTEST_* variables (pytest-xdist, for
    # example, switches benchmarks off).
    command = [sys.executable, "-m", "pytest", str(_FOLDER / "bench_case.py"), "-c", os.devnull]
    command += [f"--rootdir={ROOT}", f"--confcutdir={_FOLDER}", "-q", "-p", "pytest_benchmark.plugin"]
    command += ["-p", "no:cacheprovider", f"--benchmark-json={document_path}", f"--labscale-draft={draft_path}"]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k != "PYTHONWARNINGS"}
    try:
        ended = subprocess.run(
            command,
            cwd=draft_path.parent,
            env=inherited | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StoreError(f"The replay session did not end within {_TIMEOUT_S:g} s. {_NEXT_STEP}") from error
    if ended.returncode != 0:
        raise StoreError(f"The replay session ended with exit code {ended.returncode}:\n{ended.stdout}\n{_NEXT_STEP}")
    return ended.stdout


def _check(document: Mapping[str, Any], draft: Mapping[str, Any]) -> None:
    names = [benchmark["fullname"] for benchmark in document["benchmarks"]]
    expected = f"suite/replay/bench_case.py::test_case[{draft['case_id']}]"
    if names != [expected]:
        raise StoreError(f"The replay session stored {names}, expected [{expected!r}]. {_NEXT_STEP}")
    stored = document["benchmarks"][0]["stats"]["data"]
    if stored != list(draft["samples_s"]):
        raise StoreError(f"The replay session stored {stored} for the samples {draft['samples_s']}. {_NEXT_STEP}")
