"""Overrides on settings like Isaac Lab's, and what a library would train: what the case says, or the round ends."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from suite.schema.record import RlLibrary
from tasks.rank.configuration import apply_overrides, check_agent, contradictions
from tests.conftest import CaseMaker


@dataclass
class Solver:
    iterations: int = 4
    tolerance: float = 1e-6
    scales: tuple[float, ...] = (1.0,)
    cone: str = "pyramidal"
    limit: int | None = None
    is_graph: bool = True
    class_type: Callable[[], None] = print


@dataclass
class Task:
    solver: Solver = field(default_factory=Solver)


def test_overrides_set_values() -> None:
    task, agent = Task(), {"params": {"config": {"mixed_precision": False, "learning_rate": "1e-4"}}}
    apply_overrides(
        (
            "env.solver.iterations=8", "env.solver.tolerance=1", "env.solver.scales=[2, 3.5]",
            "env.solver.cone=elliptic", "env.solver.limit=7", "env.solver.is_graph=False",
            "agent.params.config.mixed_precision=True", "agent.params.config.torch_compile=reduce-overhead",
            "agent.params.config.learning_rate=0.5",
        ),
        env_cfg=task, agent_cfg=agent,
    )  # fmt: skip
    assert vars(task.solver) == {
        "iterations": 8, "tolerance": 1, "scales": [2, 3.5], "cone": "elliptic", "limit": 7, "is_graph": False,
        "class_type": print,
    }  # fmt: skip
    assert agent["params"]["config"] == {
        "mixed_precision": True, "torch_compile": "reduce-overhead", "learning_rate": 0.5
    }  # fmt: skip


@pytest.mark.parametrize(
    ("override", "fault"),
    [
        ("env.solver.iteration=8", "no field 'iteration'; there are iterations, tolerance"),
        ("env.solver=8", "of the type Solver"),
        ("env.solver.class_type=8", "of the type builtin_function_or_method"),
        ("env.solver.iterations=true", "of the type int"),
        ("env.solver.is_graph=1", "of the type bool"),
        ("env.solver.cone=1", "of the type str"),
    ],
)
def test_an_override_of_something_else(override: str, fault: str) -> None:
    agent: dict[str, Any] = {"params": {}}
    with pytest.raises(ValueError, match=f"^override '{re.escape(override)}': .*{re.escape(fault)}"):
        apply_overrides([override], env_cfg=Task(), agent_cfg=agent)


SETTINGS: dict[RlLibrary, dict[str, Any]] = {
    "rl_games": {"params": {"config": {"horizon_length": 16, "mini_epochs": 5, "minibatch_size": 128}}},
    "rsl_rl": {"num_steps_per_env": 16, "algorithm": {"num_learning_epochs": 5, "num_mini_batches": 4}},
    "skrl": {"agent": {"rollouts": 16, "learning_epochs": 5, "mini_batches": 4}},
    "skrl_jax": {"agent": {"rollouts": 16, "learning_epochs": 5, "mini_batches": 4}},
    "sb3": {"n_steps": 16, "n_epochs": 5, "batch_size": 128},
    "torchrl": {"num_steps_per_env": 16, "num_learning_epochs": 5, "num_mini_batches": 4},
}


@pytest.mark.parametrize("library", SETTINGS)
@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, []),
        ({"num_steps_per_env": 8, "num_envs": 64}, ["is 16, the configuration has 8"]),
        ({"minibatch_size": 256}, ["is 128, the configuration has 256"]),
        ({"optimiser_steps": 16}, ["is 20, the configuration has 16"]),
    ],
)
def test_what_differs_from_the_case_is_named(
    library: RlLibrary, changed: dict[str, int], wanted: list[str], make_case: CaseMaker
) -> None:
    """32 environments x 16 steps in minibatches of 128, 20 optimiser steps."""
    differences = list(contradictions(make_case(rl_library=library, **changed), SETTINGS[library]))
    assert [text[text.index("is ") :] for text in differences] == wanted
    assert all("agent." in text for text in differences)


@pytest.mark.parametrize(("name", "value"), [("normalize_input", True), ("normalize_value", True), ("target_kl", 0.01)])
def test_what_the_adapter_of_sb3_does_not_run_is_named(name: str, value: float, make_case: CaseMaker) -> None:
    case = make_case(rl_library="sb3")
    with pytest.raises(ValueError, match=f"agent.{name} is {value}, which labscale does not run with sb3"):
        check_agent(case, SETTINGS["sb3"] | {name: value})
    check_agent(case, SETTINGS["sb3"] | {name: None})


def test_a_library_with_other_or_without_settings_does_not_train(make_case: CaseMaker) -> None:
    """Frames a second would be those of the catalog's rollout, half of what was collected."""
    with pytest.raises(ValueError, match=r"agent\.num_steps_per_env is 32, the configuration has 16"):
        check_agent(make_case(), SETTINGS["rsl_rl"] | {"num_steps_per_env": 32})
    with pytest.raises(ValueError, match="None"):
        check_agent(make_case(), {"num_steps_per_env": 16, "algorithm": {}})
    check_agent(make_case(workload="environment_step"), {})
