"""Overrides on settings like Isaac Lab's: typed ones of a task, and a dictionary of an agent from YAML."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tasks.rank import overrides


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
    overrides.apply(
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
        overrides.apply([override], env_cfg=Task(), agent_cfg=agent)
