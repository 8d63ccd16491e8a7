"""Tasks that the catalog does not know, with a stand-in for the worker; the real one is in test_own_task.py."""

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from suite.__main__ import parse
from suite.campaign.planning.registered_task import Answer, ask, measured_costs, with_answers
from suite.commands.campaigns import options_of
from suite.errors import MatrixError, WorkerEnvironmentError
from suite.files.paths import ROOT
from suite.launch.watch import prepare
from suite.matrix.cases import expand
from suite.matrix.catalog import Catalog, load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.plan import plan
from suite.matrix.resources import Resources
from suite.records import store
from suite.schema.rank_protocol import answer_line
from suite.schema.record import Case, PlannedCase
from tests.fixtures.results.stored_rounds import make_rank, stored_round
from tests.fixtures.runs.real_runs import cartpole, matrix_of

CATALOG = load_catalog()
AGENT = {"num_steps_per_env": 24, "num_minibatches": 4, "learning_epochs": 5, "minibatch_overrides": []}
SWING = {"task": "Small-Swing-Up", "agents": {"rsl_rl": AGENT}, "cameras": False, "obstacles": {}}


def answer(**changes: object) -> Answer:
    return Answer.model_validate_json(json.dumps({**SWING, **changes}))


def cases_of(tmp_path: Path, catalog: Catalog, library: str = "rsl_rl") -> list[Case]:
    path = tmp_path / "mine.toml"
    path.write_text(matrix_of(cartpole(library, task="Small-Swing-Up", topologies=("1x1", "1x2"))), encoding="utf-8")
    return expand(load_matrix(path, catalog), catalog, device="cpu", assets="offline")


def planned(tmp_path: Path, **changes: object) -> list[PlannedCase]:
    """The plan of both cases with the catalog that the worker's answer makes."""
    catalog = with_answers(CATALOG, [answer(**changes)], out=tmp_path)
    return plan(
        cases_of(tmp_path, catalog),
        resources=Resources(nnodes=1, gpus_per_node=0, cpus_per_node=2),
        available_stacks=list(CATALOG.stacks),
        rounds=3,
        catalog=catalog,
    )


def test_the_agent_says_what_an_iteration_is(tmp_path: Path) -> None:
    first, second = (item.case for item in planned(tmp_path))
    assert (first.task, first.num_steps_per_env, first.minibatch_size) == ("Small-Swing-Up", 24, 64 * 24 // 4)
    assert (second.world_size, second.optimiser_steps, second.overrides) == (2, 20, ())


def test_a_task_that_needs_isaac_sim_is_planned_with_that_reason(tmp_path: Path) -> None:
    needs = "needs Isaac Sim: Isaac Sim PhysX physics (`PhysxCfg`)"
    for item in planned(tmp_path, obstacles={"kitless": needs, "ovphysx": "has no such preset"}):
        assert item.infeasible == f"stack kitless does not run Small-Swing-Up ({needs}); stacks that do: isaacsim"
    nowhere, _ = planned(tmp_path, obstacles=dict.fromkeys(CATALOG.stacks, needs))
    assert str(nowhere.infeasible).endswith("; no other stack does either")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"registered": ["Isaac-Humanoid", "Small-Swing-Up-v1", "CartPole-v1"]},
            r"line 9.*unknown task 'Small-Swing-Up'.*near ones are Small-Swing-Up-v1\..*--worker-package",
        ),
        ({"cannot_load": "No module named 'omni'"}, r"needs Isaac Sim \(No module named 'omni'\).*--worker-python"),
        ({}, "got skrl; Small-Swing-Up has agents for rsl_rl"),
        ({"agents": {}}, "got skrl; Small-Swing-Up has agents for none of the RL libraries that labscale runs"),
    ],
    ids=["unknown", "needs Isaac Sim", "another library", "no library"],
)
def test_a_task_that_cannot_be_planned_is_refused(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    with pytest.raises(MatrixError, match=f"(?s){message}"):
        cases_of(tmp_path, with_answers(CATALOG, [answer(**changes)], out=tmp_path), library="skrl")


def test_the_commands_of_the_page_are_understood() -> None:
    page = (ROOT / "OWN_TASK.md").read_text(encoding="utf-8")
    commands = re.findall(r"`python3 -m nox -s (plan|bench) -- ([^`]*)`", page)
    assert [name for name, _ in commands] == ["plan", "bench"]
    for name, arguments in commands:
        options = options_of(parse([name, *shlex.split(arguments), "--worker-package", "../my-extension"]))
        assert (options.selection.matrix, options.setup.worker_packages) == ("../mine.toml", ("../my-extension",))


def end_a_round(out: Path, case: Case, index: int, **changes: Any) -> None:
    run_dir = out / "raw" / case.case_id / f"r{index}"
    prepare(run_dir, case)
    ranks = tuple(make_rank(rank, (3.0, 1.0, 1.0)) for rank in range(case.world_size))
    store.write_record(stored_round(index, case=case, ranks=ranks, **changes), run_dir / "record.json")


def test_a_cost_is_unknown_until_a_round_has_completed(tmp_path: Path) -> None:
    def estimates() -> list[float | None]:
        return [item.estimated_wall_s for item in planned(tmp_path)]

    assert estimates() == [None, None]
    first, second = (item.case for item in planned(tmp_path))
    end_a_round(tmp_path, first, 0, outcome="crashed")
    end_a_round(tmp_path, replace(first, case_id=f"{first.case_id}-learning", only_learning=True), 0)
    assert list(measured_costs(tmp_path, "Small-Swing-Up")) == []
    for index, wall_time_s in ((1, 300.0), (2, 61.5)):  # the first one compiled kernels
        end_a_round(tmp_path, first, index, wall_time_s=wall_time_s)
    assert estimates() == pytest.approx([61.5, 61.5])  # two ranks as one, as long as nothing is known
    end_a_round(tmp_path, second, 0, wall_time_s=100.0)
    assert estimates() == pytest.approx([61.5, 100.0])


def stand_in(tmp_path: Path, output: str, *, exit_code: int = 0) -> Path:
    """A worker that says the same to everybody, and notes that it was asked."""
    python = tmp_path / "worker" / "bin" / "python"
    python.parent.mkdir(parents=True, exist_ok=True)
    lines = (f"echo asked >> {shlex.quote(str(tmp_path / 'asked'))}", f"printf '%s\\n' {shlex.quote(output)}")
    python.write_text("\n".join(["#!/bin/sh", *lines, f"echo no such module >&2; exit {exit_code}"]), encoding="utf-8")
    python.chmod(0o755)
    return python


def times_asked(tmp_path: Path) -> int:
    return len((tmp_path / "asked").read_text(encoding="utf-8").splitlines())


def ask_for(tmp_path: Path, answers: list[Mapping[str, object]], *tasks: str, keep: bool = True) -> tuple[Answer, ...]:
    python = stand_in(tmp_path, f"[INFO]: Parsing\n{answer_line({'answers': answers})}")
    return ask(tasks, python=python, project_root=ROOT, catalog=CATALOG, keep=keep)


def test_an_answer_is_kept_in_the_worker_unless_the_id_is_unknown(tmp_path: Path) -> None:
    for _ in range(2):
        assert ask_for(tmp_path, [SWING], "Small-Swing-Up") == (answer(),)
    assert times_asked(tmp_path) == 1
    other = {**SWING, "task": "Other"}
    assert ask_for(tmp_path, [other], "Other", "Small-Swing-Up") == (answer(task="Other"), answer())
    assert times_asked(tmp_path) == 2
    for _ in range(2):  # a package that is installed meanwhile may register it
        ask_for(tmp_path, [{"task": "Unknown", "registered": ["A"]}], "Unknown")
    assert times_asked(tmp_path) == 4


def test_a_worker_that_fails_is_quoted(tmp_path: Path) -> None:
    python = stand_in(tmp_path, "", exit_code=1)
    with pytest.raises(WorkerEnvironmentError, match=r"(?s)exit code 1:\nno such module\nThe command was PYTHONPATH="):
        ask(["Small-Swing-Up"], python=python, project_root=ROOT, catalog=CATALOG, keep=True)


def test_an_answer_of_another_form_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorkerEnvironmentError, match=r"answers.0.cameras.*got 'perhaps'"):
        ask_for(tmp_path, [{**SWING, "cameras": "perhaps"}], "Small-Swing-Up")
