"""What a campaign ends with in the terminal: no speeds where they mean nothing, and elsewhere how sure they are."""

import io
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from suite.campaign import steps
from suite.campaign.display.progress import clock
from suite.campaign.state import Campaign
from suite.matrix.resources import Resources
from suite.options.command_line import LAUNCHER_VARIABLE
from suite.schema.record import Case, CaseResult, CheckResult
from tests.fixtures.results.generated_results import (
    CPU_HOST,
    GPU_HOST,
    failed_result,
    make_case,
    make_record,
    make_result,
)
from tests.fixtures.runs.asked_options import options_with

SPEEDS = re.compile(r"frames/s|speed-?up|efficien|verdict|predict|ideal", re.IGNORECASE)


def campaign_of(results: Sequence[CaseResult], out: Path, *, encoding: str = "utf-8") -> tuple[Campaign, io.BytesIO]:
    raw = io.BytesIO()
    device = results[0].case.device
    campaign = Campaign(
        options=options_with(matrix="first" if device == "cuda" else "smoke", out=out, with_report=False),
        console=Console(file=io.TextIOWrapper(raw, encoding=encoding, write_through=True), width=160),
        machine=GPU_HOST if device == "cuda" else CPU_HOST,
        device=device,
        resources=Resources(nnodes=1, gpus_per_node=8, cpus_per_node=8),
        results=tuple(results),
        began_s=time.monotonic() - 192,
    )
    return campaign, raw


def ended(results: Sequence[CaseResult], out: Path, *, encoding: str = "utf-8") -> list[str]:
    campaign, raw = campaign_of(results, out, encoding=encoding)
    for step in (steps.summarise, steps.build_report):
        campaign = step(campaign)
    return raw.getvalue().decode(encoding).splitlines()


def worked(case: Case, *features: str) -> CaseResult:
    record = make_record(case)
    checks = tuple(CheckResult(name=one, feature=one, verdict="ok", found="x", fault=None) for one in features)
    ranks = tuple(replace(rank, validity=checks) for rank in record.ranks)
    return CaseResult(case=case, rounds=(replace(record, ranks=ranks),))


SMOKE = [
    *(worked(make_case("ant-weak", world_size=ranks, scaling="weak"), "physics") for ranks in (1, 2)),
    worked(make_case("shadow-horizontal"), "physics", "cameras"),
    failed_result(make_case("shadow-horizontal", world_size=2), outcome="crashed", reason="RuntimeError: made up"),
]


def marks(lines: Sequence[str]) -> dict[str, list[str]]:
    """Numbers of ranks and marks by task and library."""
    table = [re.split(r"\s*\|\s*|\s{2,}", line.strip(" |")) for line in lines if re.match(r"[ |]Isaac-", line)]
    return {name: cells for name, *cells in table}


def test_a_campaign_without_speeds_ends_with_marks(tmp_path: Path) -> None:
    lines = ended(SMOKE, tmp_path)
    assert marks(lines) == {
        "Isaac-Ant, rsl_rl": ["1, 2", "✓", "-", "✓", "✓"],
        "Isaac-Reorient-Cube-Shadow-Camera-Direct, rsl_rl": ["1", "✓", "✓", "✗", "?"],
    }
    (failed,) = (number for number, line in enumerate(lines) if line.startswith("✗"))
    assert lines[failed] == f"✗ {SMOKE[-1].case.case_id} round 0 crashed: RuntimeError: made up"
    assert lines[failed + 1] == f"  logs: {tmp_path / 'raw' / SMOKE[-1].case.case_id / 'r0'}"


def test_speeds_are_details_and_are_called_meaningless(tmp_path: Path) -> None:
    lines = ended(SMOKE, tmp_path)
    (details,) = (number for number, line in enumerate(lines) if line.startswith("Details."))
    assert "meaningless" in lines[details]
    (what_next,) = (number for number, line in enumerate(lines) if line == "What next")
    table = range(details, what_next)
    assert [number for number, line in enumerate(lines) if SPEEDS.search(line) and number not in table] == []
    assert [line for line in lines if "frames/s" in line]


def test_it_says_how_long_it_took_where_everything_is_and_what_next(tmp_path: Path) -> None:
    text = "\n".join(ended(SMOKE, tmp_path))
    assert f"This took {clock(192)}" in text or f"This took {clock(193)}" in text  # a slow machine's next second
    assert f"results:  {tmp_path / 'cases'}\n" in text
    assert f"logs:     {tmp_path / 'raw'}\n" in text
    assert f"python3 -m nox -s bench -- --matrix smoke --out {tmp_path} --retry-failed\n" in text
    assert re.findall(r"python3 -m nox -s (\w+)(?: --)?(.*), on that machine", text) == [
        ("env_check", ""), ("bench", ""), ("bench", " --matrix full"),
    ]  # fmt: skip
    assert "--retry-failed" not in "\n".join(ended(SMOKE[:3], tmp_path))


def test_a_terminal_without_unicode_has_words(tmp_path: Path) -> None:
    lines = ended(SMOKE, tmp_path, encoding="latin-1")
    assert marks(lines)["Isaac-Reorient-Cube-Shadow-Camera-Direct, rsl_rl"] == ["1", "yes", "yes", "NO", "?"]


def ant(gpus: int, *times_s: float) -> CaseResult:
    case = make_case("ant-weak", world_size=gpus, scaling="weak", num_envs_global=1024 * gpus, device="cuda")
    return make_result(case, *times_s)


SURER = "python3 -m nox -s bench -- --matrix first"
FOUR = [ant(1, 0.50, 0.51, 0.49), ant(4, 0.55, 0.54, 0.56)]


def test_one_and_four_gpus_say_how_sure_they_are(tmp_path: Path) -> None:
    lines = ended(FOUR, tmp_path)
    start = lines.index("Isaac-Ant, rsl_rl")
    one, four, _, command = lines[start + 1 : start + 5]
    assert "1 GPU, 1,024 environments: 32,772 frames/s (31,184 to 34,442)" in one
    assert "4 GPUs, 4,096 environments: 119,169 frames/s (113,906 to 124,676)" in four
    assert "90.9% of the ideal (87.1% to 94.9%): at least 80 %" in four
    assert command.endswith(f"{SURER} --out {tmp_path} --repeats 8")
    assert lines[-3].endswith("python3 -m nox -s plan -- --matrix full")


def test_who_came_without_nox_is_told_a_command_that_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LAUNCHER_VARIABLE, "/opt/a b/labscale.sh")
    text = "\n".join(ended(FOUR, tmp_path))
    assert f": '/opt/a b/labscale.sh' bench --matrix first --out {tmp_path} --repeats 8\n" in text
    assert "python3 -m nox" not in text
