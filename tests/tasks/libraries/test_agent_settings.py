"""What a library would train is what the case says, else the round ends before it begins."""

from collections.abc import Iterator
from typing import Any

import pytest

from suite.records.store import load_results
from suite.schema.record import CaseResult, RlLibrary
from tasks.checks.agent_settings import check, contradictions
from tests.conftest import CaseMaker
from tests.fixtures.results.committed_results import RESULTS

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
    ("changed", "said"),
    [
        ({}, []),
        ({"num_steps_per_env": 8, "num_envs": 64}, ["is 16, and the case has 8"]),
        ({"minibatch_size": 256}, ["is 128, and the case has 256"]),
        ({"optimiser_steps": 16}, ["is 20, and the case has 16"]),
    ],
)
def test_what_differs_from_the_case_is_named(
    library: RlLibrary, changed: dict[str, int], said: list[str], make_case: CaseMaker
) -> None:
    """32 environments x 16 steps in minibatches of 128, 20 optimiser steps."""
    found = list(contradictions(make_case(rl_library=library, **changed), SETTINGS[library]))
    assert [one[one.index("is ") :] for one in found] == said
    assert all("agent." in one for one in found)


@pytest.mark.parametrize(("name", "value"), [("normalize_input", True), ("normalize_value", True), ("target_kl", 0.01)])
def test_what_the_adapter_of_sb3_does_not_run_is_named(name: str, value: float, make_case: CaseMaker) -> None:
    case = make_case(rl_library="sb3")
    with pytest.raises(ValueError, match=f"agent.{name} is {value}, which labscale does not run with sb3"):
        check(case, SETTINGS["sb3"] | {name: value})
    check(case, SETTINGS["sb3"] | {name: None})


def test_every_stored_round_was_trained_as_its_case_says() -> None:
    looked_at = 0
    for result in stored():
        for record in result.completed:
            if result.case.learns and record.workload is not None:
                assert list(contradictions(result.case, nested(dict(record.workload)))) == []
                looked_at += 1
    assert looked_at > 100


def stored() -> Iterator[CaseResult]:
    for folder in sorted(path for path in RESULTS.iterdir() if (path / "cases").is_dir()):
        yield from load_results(folder)


def nested(workload: dict[str, Any]) -> dict[str, Any]:
    """The agent's settings of a fingerprint, as the library has them."""
    settings: dict[str, Any] = {}
    for name, value in workload.items():
        if name.startswith("agent."):
            *path, last = name.split(".")[1:]
            inner = settings
            for key in path:
                inner = inner.setdefault(key, {})
            inner[last] = value
    return settings


def test_settings_that_are_not_there_are_named(make_case: CaseMaker) -> None:
    with pytest.raises(ValueError, match="None"):
        check(make_case(), {"num_steps_per_env": 16, "algorithm": {}})


def test_a_library_with_other_defaults_does_not_train(make_case: CaseMaker) -> None:
    """Frames a second would be those of the catalog's rollout, half of what was collected."""
    with pytest.raises(ValueError, match=r"agent\.num_steps_per_env is 32, and the case has 16"):
        check(make_case(), SETTINGS["rsl_rl"] | {"num_steps_per_env": 32})
    check(make_case(workload="environment_step"), {})
