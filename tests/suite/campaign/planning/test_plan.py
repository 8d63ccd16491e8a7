"""What a campaign plans: the default matrix, the stack of its worker, repeats of baselines, and what is said first."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any, get_args

import pytest
from rich.console import Console

from suite.campaign import steps
from suite.campaign.folder import Folder
from suite.campaign.planning.plan import NO_SPEEDS, make_plan, planned_cases, print_plan, rule_of, show_plan
from suite.campaign.schedule import blocks_of
from suite.campaign.state import Campaign
from suite.errors import MatrixError, UsageError
from suite.external.machine import CANNOT_SUBMIT, NO_COMMIT
from suite.launch.registry import LAUNCHERS
from suite.matrix.catalog import load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.resources import GPU_SHARE, load_of, time_of_block_s
from suite.options.options import Releases, flag_of
from suite.records import store
from suite.schema.record import CaseResult, Device, Environment, MinibatchRule, PlannedCase, RunRecord, Workload
from suite.statistics.reduce import round_time_s
from suite.statistics.stopping_rule import Rule
from suite.statistics.twins import is_twin, with_twins
from tests.fixtures.results.committed_results import NEWEST
from tests.fixtures.results.generated_results import CPU_HOST, GPU_HOST, make_case
from tests.fixtures.runs.asked_options import changed, options_with
from tests.fixtures.runs.simulated_campaign import campaign_of, planned_case, printed
from tests.fixtures.runs.simulated_host import SimulatedHost

CATALOG = load_catalog()
STARTING_S = 10.0  # the runs of a block start within this time


def planned(num_gpus: int, *, memory_gb: float = 560.0, num_cpus: int = 128, **options: Any) -> Campaign:
    """The plan of ``bench`` with these options on a machine with so many GPUs."""
    gpu_host = replace(GPU_HOST, gpus=GPU_HOST.gpus[:num_gpus], memory_gb=memory_gb, num_cpus=num_cpus)
    machine = gpu_host if num_gpus else CPU_HOST

    def capture(*, host_label: str | None = None, out: Path | None = None) -> Environment:  # noqa: ARG001
        return replace(machine, host_label=host_label)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steps, "capture", capture)
        return make_plan(steps.start(options_with(**options), Console(file=io.StringIO(), width=200)))


def test_without_a_gpu_everything_small_is_shown_to_work() -> None:
    campaign = planned(0)
    assert (campaign.options.selection.matrix, campaign.device, campaign.out.name) == ("smoke", "cpu", "smoke")
    assert {item.case.task for item in campaign.planned} == set(CATALOG.tasks)
    assert {item.case.task for item in campaign.warm_ups} == set(CATALOG.tasks)


@pytest.mark.parametrize(("num_gpus", "sizes"), [(1, [1]), (2, [1, 2]), (8, [1, 8])])
def test_on_gpus_one_and_all_of_them_are_measured(num_gpus: int, sizes: list[int]) -> None:
    campaign = planned(num_gpus)
    assert (campaign.options.selection.matrix, campaign.device, campaign.out.name) == ("first", "cuda", "first")
    case_ids = [item.case.case_id for item in campaign.planned]
    assert case_ids == [
        *(f"ant-weak/rl_games-kitless-n{1024 * size}-1x{size}" for size in sizes),
        "ant-envs/rl_games-kitless-n8192-1x1",
    ]
    assert {item.infeasible for item in campaign.planned} == {None}
    assert {item.case.case_id for item in campaign.warm_ups} == {f"{case_id}-warm-up" for case_id in case_ids}


def test_a_device_or_a_matrix_that_is_named_decides() -> None:
    assert planned(2, device="cpu").options.selection.matrix == "smoke"
    assert planned(2, matrix="short").options.selection.matrix == "short"


def test_scripts_for_nodes_that_nobody_has_seen_need_numbers() -> None:
    assert planned(0, launcher="slurm", render_only=True).options.selection.matrix == "smoke"
    with pytest.raises(MatrixError, match=r"the matrix first asks for all GPUs of a node.* such as --matrix short"):
        planned(0, launcher="slurm", render_only=True, matrix="first")


def refused(items: Sequence[PlannedCase]) -> set[str]:
    return {item.case.stack for item in items if item.infeasible}


def test_one_worker_runs_both_physics_engines_in_one_campaign() -> None:
    campaign = planned(4, matrix="physx")
    assert campaign.stack == "ovphysx"
    assert refused(campaign.planned) == set()
    points = {
        (item.case.task, item.case.rl_library, item.case.stack, item.case.world_size) for item in campaign.planned
    }
    assert len(points) == 2 * 2 * 2 * 3  # and a twin of each baseline
    presets = {item.case.stack: item.case.presets for item in campaign.planned}
    assert presets == {"kitless": (), "ovphysx": ("presets=ovphysx",)}
    narrowed = planned(4, matrix="physx", case_globs=("*kitless*",))  # it has the same worker
    assert (narrowed.stack, {item.case.stack for item in narrowed.planned}) == ("ovphysx", {"kitless"})


@pytest.mark.parametrize("chosen", ["kitless", "ovphysx"])
def test_a_chosen_stack_is_the_only_one(chosen: str) -> None:
    campaign = planned(4, matrix="physx", stack=chosen)
    assert campaign.stack == chosen
    assert {item.case.stack for item in campaign.planned} == {chosen}
    assert refused(campaign.planned) == set()


@pytest.mark.parametrize("options", [{"device": "cpu"}, {"launcher": "container"}])  # an image holds one stack
def test_where_physx_cannot_run_it_is_refused(options: dict[str, Any]) -> None:
    campaign = planned(0 if "device" in options else 4, matrix="physx", **options)
    assert campaign.stack == "kitless"
    assert "ovphysx" in refused(campaign.planned)


@pytest.mark.parametrize(
    ("asked", "twins"),
    [
        (
            {"series": ("ant-weak",), "rl_libraries": ("rsl_rl",), "gpus": (2, 4)},
            ["ant-weak/rsl_rl-kitless-n2048-1x2-aa"],
        ),
        ({"case_globs": ("ant-weak/*-n1024-1x1*",)}, ["ant-weak/rl_games-kitless-n1024-1x1-aa"]),
        ({"series": ("ant-weak",), "a_a": False}, []),
    ],
)
def test_a_part_of_a_campaign_has_a_twin_of_its_own_baseline(asked: dict[str, Any], twins: list[str]) -> None:
    """Patterns of case ids name the twins too; nothing else does."""
    campaign = planned(4, matrix="full", **asked)
    assert [item.case.case_id for item in campaign.planned if is_twin(item.case)] == twins
    assert len(campaign.planned) > len(twins)


def test_a_twin_is_no_result(tmp_path: Path) -> None:
    case, twin = with_twins([make_case()])
    folder = Folder(root=tmp_path)
    assert folder.case_path(case) == tmp_path / "cases" / f"{case.case_id}.json"
    assert folder.case_path(twin) == tmp_path / "a_a" / f"{case.case_id}-aa.json"
    assert folder.run_dir(case, 0) != folder.run_dir(twin, 0)


@pytest.mark.parametrize(
    ("matrix", "options", "rule"),
    [
        ("smoke", {}, Rule(rounds=1)),
        ("full", {}, Rule(rounds=4, precision=0.04, max_rounds=12)),
        ("full", {"repeats": 5}, Rule(rounds=5)),
        ("full", {"target_precision": 0.02, "max_rounds": 20}, Rule(rounds=4, precision=0.02, max_rounds=20)),
        ("smoke", {"repeats": 2, "target_precision": 0.02}, Rule(rounds=2, precision=0.02)),
        ("full", {"budget_minutes": 2.0}, Rule(rounds=4, precision=0.04, max_rounds=12, budget_s=120.0)),
    ],
)
def test_the_rule_is_what_options_and_matrix_say(matrix: str, options: dict[str, object], rule: Rule) -> None:
    planned_rule = rule_of(options_with(matrix=matrix, **options), load_matrix(matrix, CATALOG))
    assert replace(planned_rule, max_rounds=rule.max_rounds) == rule
    assert rule.precision is None or planned_rule.max_rounds == rule.max_rounds


def refused_for_memory(items: Sequence[PlannedCase]) -> set[int]:
    return {item.case.nproc_per_node for item in items if "GB of memory" in str(item.infeasible)}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_ranks_that_share_a_gpu_need_memory_of_the_machine_that_trains_them(launcher: str) -> None:
    campaign = planned(1, memory_gb=64.0, matrix="learning-scaling")
    campaign = replace(campaign, options=changed(campaign.options, launcher=launcher))
    items = planned_cases(campaign, [item.case for item in campaign.planned], rounds=1)
    assert refused_for_memory(items) == (set() if launcher in {"slurm", "ssh", "ray"} else {16})


@pytest.mark.parametrize("options", [{"launcher": "slurm", "render_only": True}, {"render": "kubernetes"}])
def test_the_memory_of_machines_that_a_script_is_for_is_not_known(options: dict[str, Any]) -> None:
    small = planned(1, memory_gb=64.0, matrix="learning-scaling", device="cuda", **options)
    assert refused_for_memory(small.planned) == set()


def cases_of(results: Path) -> list[CaseResult]:
    return [store.read_case(path) for path in sorted((results / "cases").rglob("*.json"))]


@pytest.mark.parametrize("results", sorted(NEWEST.glob("*-shared*")), ids=lambda results: results.name)
def test_trainings_that_share_a_gpu_were_not_much_slower_than_planned(results: Path) -> None:
    """They were less slow with MPS and slower with rsl_rl; the plan cannot know whether MPS will be there."""
    measured = cases_of(results)
    times_s = {result.case: fmean(map(round_time_s, result.completed)) for result in measured}
    shared = [case for case in times_s if case.trainings_per_gpu > 1]
    assert shared
    alone_s = {(case.series, case.rl_library): times_s[case] for case in times_s if case not in shared}
    for case in shared:
        slower = times_s[case] / alone_s[case.series, case.rl_library]
        assert 1 / 3 < slower / max(1.0, load_of(case, renders=False)) < 1.4
        if case.trainings_per_gpu == 4 and case.rl_library == "rl_games":
            assert slower / 4 <= GPU_SHARE


def test_blocks_of_learning_took_at_most_as_long_as_planned_and_a_third_or_more() -> None:
    """The machine was an H200 with MPS. The first block compiled kernels too."""
    runs = [record for result in cases_of(NEWEST / "h200-learning-scaling-1") for record in result.completed]
    runs.sort(key=_started_s)
    blocks: list[list[RunRecord]] = []
    for record in runs:
        if not blocks or _started_s(record) > _started_s(blocks[-1][0]) + STARTING_S:
            blocks.append([])
        blocks[-1].append(record)
    assert [len(block) for block in blocks] == [4, 1, 6, 1, 1, 6, 5, 3, 1]
    campaign = planned(1, memory_gb=137.4, num_cpus=16, matrix="learning-scaling")
    all_planned_s = all_took_s = 0.0
    for block in blocks:
        planned_s = time_of_block_s(planned_cases(campaign, [record.case for record in block], rounds=1))
        assert planned_s is not None
        took_s = max(record.wall_time_s or 0.0 for record in block)
        assert 1 / 3 < took_s / planned_s < 1.1, [record.case.case_id for record in block]
        all_planned_s, all_took_s = all_planned_s + planned_s, all_took_s + took_s
    assert all_took_s / all_planned_s == pytest.approx(0.5, abs=0.05)  # as the plan says of MPS


def _started_s(record: RunRecord) -> float:
    return datetime.fromisoformat(record.started_utc or "").timestamp()


@pytest.mark.parametrize(
    ("matrix", "turns"), [("learning-scaling", True), ("learning-scaling", False), ("shared-gpu", True)]
)
def test_the_plan_says_how_long_the_gpu_is_held(matrix: str, *, turns: bool) -> None:
    campaign = planned(1, memory_gb=137.4, num_cpus=16, matrix=matrix, turns=turns)
    blocks = blocks_of(campaign, campaign.planned)
    show_plan(campaign)
    (total,) = re.findall(r"can run here: .* ([\d,]+) GPU-minutes\.", printed(campaign))
    assert total == f"{6 * sum(time_of_block_s(block) or 0.0 for block in blocks) / 60:.0f}"
    assert printed(campaign).count("\n    at most ") == sum(len(block) > 1 for block in blocks)


def test_the_plan_has_words_for_what_a_matrix_has_keys_for() -> None:
    (item, *_) = planned(1).planned
    rules = [replace(item, case=replace(item.case, minibatch_rule=rule)) for rule in get_args(MinibatchRule)]
    controls = [replace(item, case=replace(item.case, workload=workload)) for workload in get_args(Workload)]
    items = [*rules, *controls]
    console = Console(file=io.StringIO(), width=200)
    print_plan(console, items, [None] * len(items), GPU_HOST, [[item] for item in items])
    assert isinstance(console.file, io.StringIO)
    works = [line for line in console.file.getvalue().splitlines() if line.startswith(("  minibatch", "  nothing is"))]
    assert len(works) == len(items)
    assert [line for line in works if "_" in line] == []


@pytest.mark.parametrize(
    ("series", "blocks"), [((), 2), (("cartpole-*", "ant-weak"), 1), (("shadow-*", "control-*"), 1)]
)
def test_each_half_of_short_takes_turns_on_eight_gpus_and_all_of_it_does_not_fit(
    series: tuple[str, ...], blocks: int
) -> None:
    campaign = planned(8, matrix="short", series=series)
    assert len(blocks_of(campaign, campaign.planned)) == blocks


@pytest.mark.parametrize(
    ("num_gpus", "matrix", "is_said"), [(0, "smoke", True), (0, "learning-scaling", False), (1, "short", False)]
)
def test_the_plan_says_that_a_cpu_has_no_speeds(num_gpus: int, matrix: str, *, is_said: bool) -> None:
    campaign = planned(num_gpus, matrix=matrix)
    print_plan(campaign.console, campaign.planned, [None] * len(campaign.planned), campaign.machine, [])
    assert (NO_SPEEDS in printed(campaign)) == is_said


@pytest.mark.parametrize(("matrix", "is_used"), [("learning-scaling", True), ("shared-gpu", True), ("short", False)])
def test_the_plan_says_what_it_takes_for_granted_of_a_gpu_that_is_shared(matrix: str, *, is_used: bool) -> None:
    campaign = planned(1, matrix=matrix, turns=False)
    print_plan(campaign.console, campaign.planned, [None] * len(campaign.planned), campaign.machine, [])
    assert (f"{GPU_SHARE:.0%}" in printed(campaign)) == is_used


OF_TIMES = {"target_precision": 0.1, "max_rounds": 9, "budget_minutes": 9.0, "a_a": True, "upstream": True}


def test_what_needs_times_is_refused_where_only_what_is_learned_counts() -> None:
    matrix = load_matrix("learning-scaling", CATALOG)
    for options in ({}, {"repeats": 3}, {"a_a": False}, {"turns": False}):
        assert rule_of(options_with(**options), matrix).precision is None
    searches = {"capacity": "ant-weak", "bisect": Releases.read("newton")}
    with pytest.raises(UsageError) as refused:
        rule_of(options_with(**OF_TIMES, **searches), matrix)
    for word in ("another --matrix", *map(flag_of, (*OF_TIMES, *searches))):
        assert word in str(refused.value)
    assert "only_learning" not in str(refused.value)  # the user never gave that


@pytest.mark.parametrize(
    ("walls_s", "total"),
    [
        ([120.0, 240.0], "about 18:00 one after another, 18 GPU-minutes."),
        ([120.0, None, 240.0, None], "at least 18:00 one after another, 18 GPU-minutes, and 2 of unknown cost."),
        ([1.0], "about 0:03 one after another, 1 GPU-minute."),
        ([None], "1 of unknown cost."),
        ([], "nothing to do."),
    ],
)
def test_a_total_over_unknown_costs_is_a_least_one(walls_s: list[float | None], total: str) -> None:
    items = [planned_case(make_case(device="cuda", world_size=1), rounds=3, wall_s=wall_s) for wall_s in walls_s]
    console = Console(file=io.StringIO(), width=200)
    print_plan(console, items, [None] * len(items), GPU_HOST, [[item] for item in items])
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[-1].partition(": ")[2] == total


@pytest.mark.parametrize(
    ("device", "commit", "is_dirty", "message"),
    [
        ("cuda", "a" * 40, True, CANNOT_SUBMIT),
        ("cuda", "a" * 40, False, None),
        ("cuda", None, None, NO_COMMIT),
        ("cpu", None, True, None),
    ],
)
def test_what_submit_will_refuse_is_said_before_hours_of_measuring(
    tmp_path: Path, device: Device, commit: str | None, *, is_dirty: bool | None, message: str | None
) -> None:
    machine = replace(GPU_HOST, git_commit=commit, git_dirty=is_dirty)
    campaign = replace(campaign_of(SimulatedHost()), device=device, machine=machine)
    steps._say_what_is_left(campaign, Folder(root=tmp_path), 3)
    assert {CANNOT_SUBMIT, NO_COMMIT} & set(printed(campaign).splitlines()) == ({message} if message else set())
