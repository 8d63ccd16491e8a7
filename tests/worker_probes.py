"""Programs of tests/probes, run in the worker environment, and what the longest of them found."""

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from suite.files.paths import ROOT
from suite.install.worker import Worker


@dataclass(frozen=True, kw_only=True)
class Hand:
    """What tests.probes.hand found, and the frame that it saved."""

    found: dict[str, Any]
    frame: Path


def run_in_worker(worker: Worker, *arguments: str) -> str:
    """Run ``python ARGUMENTS`` in the worker environment on the CPU, with the offline assets; return its output."""
    done = subprocess.run(
        [worker.python, *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(part for part in (str(ROOT), os.environ.get("PYTHONPATH")) if part),
            "ISAACSIM_ASSET_ROOT": str(worker.asset_root),
            "WARP_CACHE_PATH": str(worker.cache_dir / "warp"),
            "CUDA_VISIBLE_DEVICES": "",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def probe(worker: Worker, name: str, *arguments: str) -> dict[str, Any]:
    """Run a program of tests/probes; its last line is what it found."""
    found: dict[str, Any] = json.loads(run_in_worker(worker, "-m", f"tests.probes.{name}", *arguments).splitlines()[-1])
    return found


@pytest.fixture(scope="session")
def hand(worker: Worker, tmp_path_factory: pytest.TempPathFactory) -> Hand:
    frame = tmp_path_factory.mktemp("frames") / "hand.png"
    return Hand(found=probe(worker, "hand", str(frame)), frame=frame)
