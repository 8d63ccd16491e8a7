"""The catalog as it is, and what it refuses."""

from pathlib import Path

import pytest

from suite.errors import MatrixError
from suite.matrix.catalog import CATALOG_PATH, load_catalog

HAND = "Isaac-Reorient-Cube-Shadow-Camera-Direct"


def edited(tmp_path: Path, *edits: tuple[str, str]) -> Path:
    """The real catalog with some texts replaced."""
    text = CATALOG_PATH.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "catalog.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("alias", "task"),
    [
        ("Isaac-Cartpole-Direct-v0", "Isaac-Cartpole-Direct"),
        ("Isaac-Ant-v0", "Isaac-Ant"),
        ("Isaac-Repose-Cube-Shadow-Vision-Direct-v0", HAND),
        (HAND, HAND),
    ],
)
def test_ids_of_both_releases_resolve(alias: str, task: str) -> None:
    assert load_catalog().resolve(alias).task == task


def test_an_unknown_task_lists_what_exists_and_guesses() -> None:
    with pytest.raises(MatrixError) as error:
        load_catalog().resolve("Isaac-Cartpole-Direkt")
    message = str(error.value)
    assert message.startswith("unknown task 'Isaac-Cartpole-Direkt'; known are Isaac-Cartpole-Direct (also ")
    assert HAND in message
    assert message.endswith("Did you mean 'Isaac-Cartpole-Direct'?")


def test_an_agent_has_a_size_or_a_count_of_minibatches(tmp_path: Path) -> None:
    path = edited(tmp_path, ("minibatch_size = 32768", "minibatch_size = 32768\nnum_minibatches = 2"))
    with pytest.raises(MatrixError, match=r"Isaac-Ant\.agents\.rl_games: .*either minibatch_size or num_minibatches"):
        load_catalog(path)


@pytest.mark.parametrize(
    ("new", "why"),
    [
        ("", "both optimiser_steps and optimiser_step_s"),
        ("optimiser_step_s = 0.47", "less than iteration_s together"),
    ],
)
def test_costs_that_contradict_themselves_are_refused(tmp_path: Path, new: str, why: str) -> None:
    with pytest.raises(MatrixError, match=why):
        load_catalog(edited(tmp_path, ("optimiser_step_s = 0.0047", new)))


@pytest.mark.parametrize(("old", "new"), [(" world_size = 1,", ""), ("ranks_learn_alone = ", "# ")])
def test_references_say_how_many_ranks_where_each_learns_alone(old: str, new: str, tmp_path: Path) -> None:
    with pytest.raises(MatrixError, match=rf"{HAND}: .*world_size where ranks_learn_alone, and there only"):
        load_catalog(edited(tmp_path, (old, new)))


def test_contradictions_are_reported_together(tmp_path: Path) -> None:
    path = edited(
        tmp_path,
        ('aliases = ["Isaac-Ant-v0"]', 'aliases = ["Isaac-Cartpole-Direct"]'),
        ('"Isaac-Cartpole-Direct", "Isaac-Ant"]', '"Isaac-Ants"]'),
        ("horizon_length={num_steps_per_env}", "horizon_length={num_steps}"),
    )
    with pytest.raises(MatrixError) as error:
        load_catalog(path)
    message = str(error.value)
    assert "3 problems" in message
    assert "tasks.Isaac-Ant.aliases: got 'Isaac-Cartpole-Direct', which already names the task itself" in message
    assert "stacks.ovphysx.tasks: got Isaac-Ants; should be ids of [tasks.…]" in message
    assert "libraries.rl_games.num_steps_override: got 'agent.params.config.horizon_length={num_steps}'" in message
