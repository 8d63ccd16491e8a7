"""Run the replay session in a separate process, and return the checked pytest-benchmark documents."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypedDict

from suite.errors import StoreError
from suite.files.paths import ROOT

_FOLDER: Final = Path(__file__).resolve().parent
_TIMEOUT_S: Final = 300.0
_NEXT_STEP: Final = (
    "Nothing was stored, and the rounds are kept. Run again; if the error stays, report it with the output above."
)


class Draft(TypedDict):
    """A case as pytest-benchmark shall store it; ``machine_info``, ``commit_info`` and ``labscale`` are copied."""

    case_id: str
    series: str
    samples_s: list[float]
    extra_info: dict[str, Any]
    machine_info: dict[str, Any]
    commit_info: dict[str, Any]
    labscale: dict[str, Any]


def replay(drafts: Sequence[Draft]) -> list[dict[str, Any]]:
    """Return the pytest-benchmark document of each draft. One session makes all: it takes half a second to start.

    Raises StoreError with the session's output if the session fails or stores other numbers than the drafts'.
    """
    if not drafts:
        return []
    played = [{key: draft[key] for key in ("case_id", "series", "samples_s", "extra_info")} for draft in drafts]
    with tempfile.TemporaryDirectory(prefix="labscale-replay-") as folder:
        drafts_path, document_path = Path(folder, "drafts.json"), Path(folder, "document.json")
        drafts_path.write_text(json.dumps(played, allow_nan=False), encoding="utf-8")
        output = _run_session(drafts_path, document_path)
        if not document_path.is_file() or not document_path.stat().st_size:
            raise StoreError(f"pytest-benchmark wrote no document:\n{output}\n{_NEXT_STEP}")
        document: dict[str, Any] = json.loads(document_path.read_text(encoding="utf-8"))
    _check(document["benchmarks"], drafts)
    return [
        document
        | {"machine_info": document["machine_info"] | draft["machine_info"], "commit_info": draft["commit_info"]}
        | {"benchmarks": [benchmark], "labscale": draft["labscale"]}
        for benchmark, draft in zip(document["benchmarks"], drafts, strict=True)
    ]


def _run_session(drafts_path: Path, document_path: Path) -> str:
    # The session must not depend on the user's folder, configuration, plugins and PYTEST_* variables (pytest-xdist, for
    # example, switches benchmarks off).
    command = [sys.executable, "-m", "pytest", str(_FOLDER / "bench_case.py"), "-c", os.devnull]
    command += [f"--rootdir={ROOT}", f"--confcutdir={_FOLDER}", "-q", "-p", "pytest_benchmark.plugin"]
    command += ["-p", "no:cacheprovider", f"--benchmark-json={document_path}", f"--labscale-drafts={drafts_path}"]
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_") and k != "PYTHONWARNINGS"}
    try:
        ended = subprocess.run(
            command,
            cwd=drafts_path.parent,
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


def _check(benchmarks: Sequence[Mapping[str, Any]], drafts: Sequence[Draft]) -> None:
    names = [benchmark["fullname"] for benchmark in benchmarks]
    expected = [f"suite/replay/bench_case.py::test_case[{draft['case_id']}]" for draft in drafts]
    if names != expected:
        raise StoreError(f"The replay session stored {names}, expected {expected}. {_NEXT_STEP}")
    for benchmark, draft in zip(benchmarks, drafts, strict=True):
        stored = benchmark["stats"]["data"]
        if stored != draft["samples_s"]:
            raise StoreError(f"The replay session stored {stored} for the samples {draft['samples_s']}. {_NEXT_STEP}")
