"""A matrix of many GPUs is planned, and its report is light, from GENERATED rounds."""

import re
from pathlib import Path

import pytest

from reports.site import build as report
from tests.fixtures.results.generated_results import make_case, make_result, write_results

MAX_PAGE_BYTES = 200_000  # of 1024 GPUs 158 kB, 19 kB as servers send it, two thirds of it charts, 2026-11-23


@pytest.mark.slow
@pytest.mark.parametrize("most_gpus", [64, 1024])
def test_the_report_of_many_gpus_is_light(tmp_path: Path, most_gpus: int) -> None:
    cases = (
        make_case(
            "ant-weak", world_size=gpus, nnodes=max(1, gpus // 8), scaling="weak", num_envs_global=2048 * gpus,
            device="cuda", iterations=40,
        )
        for gpus in (2**power for power in range(most_gpus.bit_length()))
    )  # fmt: skip
    write_results([make_result(case, 0.5, 0.501, 0.502) for case in cases], tmp_path / "results")
    site = report.build(tmp_path / "results", tmp_path / "site").parent
    assert max(path.stat().st_size for path in site.glob("*.html")) < MAX_PAGE_BYTES
    page = (site / "task-ant.html").read_text(encoding="utf-8")
    # The last tick of the axis is the last count, and the curve goes on over nodes.
    speedup = re.search(r'id="task-ant-share".*?</svg>', page, re.DOTALL)
    assert speedup is not None
    assert f">{most_gpus}</text>" in speedup[0]
    assert "nodes" not in speedup[0]
