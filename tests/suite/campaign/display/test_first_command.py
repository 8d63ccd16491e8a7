"""``bench`` without a matrix: on GPUs the smallest measurement, elsewhere what works. GPUs and runs are simulated."""

import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from suite.campaign import steps
from suite.campaign.planning.plan import make_plan
from suite.campaign.state import Campaign
from suite.errors import MatrixError
from suite.matrix.catalog import load_catalog
from suite.options.options import Options
from suite.schema.record import Environment
from tests.fixtures.results.generated_results import CPU_HOST, GPU_HOST
from tests.fixtures.runs.asked_options import changed, options_with

CATALOG = load_catalog()
Machine = Callable[[int], None]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Make this machine one with so many GPUs."""

    def has(num_gpus: int) -> None:
        found = replace(GPU_HOST, gpus=GPU_HOST.gpus[:num_gpus]) if num_gpus else CPU_HOST

        def capture(*, host_label: str | None = None, out: Path | None = None) -> Environment:  # noqa: ARG001
            return replace(found, host_label=host_label)

        monkeypatch.setattr(steps, "capture", capture)

    return has


def planned(options: Options) -> Campaign:
    return make_plan(steps.start(options, Console(file=io.StringIO(), width=200)))


def test_without_a_gpu_everything_small_is_shown_to_work(machine: Machine) -> None:
    machine(0)
    campaign = planned(options_with())
    assert (campaign.options.selection.matrix, campaign.device, campaign.out.name) == ("smoke", "cpu", "smoke")
    assert {item.case.task for item in campaign.planned} == set(CATALOG.tasks)
    assert {item.case.task for item in campaign.warm_ups} == set(CATALOG.tasks)


@pytest.mark.parametrize(("num_gpus", "sizes"), [(1, [1]), (2, [1, 2]), (6, [1, 6]), (8, [1, 8])])
def test_on_gpus_one_and_all_of_them_are_measured(machine: Machine, num_gpus: int, sizes: list[int]) -> None:
    machine(num_gpus)
    campaign = planned(options_with())
    assert (campaign.options.selection.matrix, campaign.device, campaign.out.name) == ("first", "cuda", "first")
    assert [item.case.case_id for item in campaign.planned] == [
        *(f"ant-weak/rl_games-kitless-n{1024 * size}-1x{size}" for size in sizes),
        "ant-envs/rl_games-kitless-n8192-1x1",
    ]
    assert {item.infeasible for item in campaign.planned} == {None}
    assert {item.case.case_id for item in campaign.warm_ups} == {
        f"{item.case.case_id}-warm-up" for item in campaign.planned
    }


def test_a_device_or_a_matrix_that_is_named_decides(machine: Machine) -> None:
    machine(2)
    assert planned(options_with(device="cpu")).options.selection.matrix == "smoke"
    assert planned(options_with(matrix="short")).options.selection.matrix == "short"


def test_scripts_for_nodes_that_nobody_has_seen_need_numbers(machine: Machine) -> None:
    machine(0)
    scripts = options_with(launcher="slurm", render_only=True)
    assert planned(scripts).options.selection.matrix == "smoke"
    with pytest.raises(MatrixError, match=r"the matrix first asks for all GPUs of a node.* such as --matrix short"):
        planned(changed(scripts, matrix="first"))
