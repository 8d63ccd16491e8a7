"""Copies of committed results, damaged: what verification finds in them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from reports.verification.case_file import check_case
from reports.verification.finding import Finding
from reports.verification.set_folder import verify_set
from suite.records.store import read_unsound_case

COMMITTED: Final = Path(__file__).resolve().parents[1] / "reports" / "results"
VERSION: Final = COMMITTED / "2026.11"
PAIRS: Final = VERSION / "h200-x4-pairs"
CASE: Final = "cases/ant-weak/rl_games-kitless-n2048-1x2.json"
TWO_GPUS: Final = VERSION / "h200-x2-shadow/cases/shadow-horizontal/rsl_rl-kitless-n1024-1x2.json"
TWO_NODES: Final = VERSION / "h200-x2-nodes/cases/ant-weak/rl_games-kitless-n2048-2x1.json"
RENDERING: Final = VERSION / "h200-x4-controls/cases/control-shadow-render/rsl_rl-kitless-n2048-1x4.json"
Damage = Callable[[Any], None]


def copy_without_hashes(folder: Path, copy: Path) -> Path:
    """Copy a set without its hashes, so that each damage must be found by its meaning."""
    shutil.copytree(folder, copy)
    (copy / "SHA256SUMS").unlink()
    return copy


def damage(path: Path, change: Damage) -> None:
    stored = json.loads(path.read_text())
    change(stored)
    path.write_text(json.dumps(stored))


def findings(folder: Path) -> list[Finding]:
    return list(verify_set(folder, root=folder).findings)


def rounds(stored: Any) -> list[Any]:
    found: list[Any] = stored["labscale"]["case_result"]["rounds"]
    return found


def column(stored: Any, name: str, *, rank: int = 1) -> list[float]:
    found: list[float] = rounds(stored)[0]["ranks"][rank]["samples"][name]
    return found


def ranks(stored: Any) -> list[Any]:
    found: list[Any] = rounds(stored)[0]["ranks"]
    return found


def telemetry(stored: Any) -> Any:
    return rounds(stored)[0]["telemetry"]


def set_item(target: Any, key: Any, value: Any) -> None:
    target[key] = value


def sample(stored: Any, name: str, iteration: int, factor: float) -> None:
    """One sample of rank 1 times ``factor``."""
    column(stored, name)[iteration] *= factor


def scale(values: list[float], factor: float) -> None:
    values[:] = [value * factor for value in values]


def damaged_case(path: Path, change: Damage, tmp_path: Path) -> list[Finding]:
    """What is found in a copy of one stored case, below ``tmp_path``, without the set around it."""
    copy = tmp_path / "cases" / path.parent.name / path.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(path.read_bytes())
    damage(copy, change)
    return list(
        check_case(copy.relative_to(tmp_path).as_posix(), json.loads(copy.read_text()), read_unsound_case(copy))
    )
