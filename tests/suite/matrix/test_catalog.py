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


def test_ids_of_both_releases_resolve_and_an_unknown_one_gets_the_nearest() -> None:
    catalog = load_catalog()
    assert catalog.resolve("Isaac-Repose-Cube-Shadow-Vision-Direct-v0").task == catalog.resolve(HAND).task == HAND
    with pytest.raises(MatrixError, match=r"'Isaac-Cartpole-Direkt'.*Did you mean 'Isaac-Cartpole-Direct'\?"):
        catalog.resolve("Isaac-Cartpole-Direkt")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("minibatch_size = 32768", "minibatch_size = 32768\nnum_minibatches = 2", r"Isaac-Ant\.agents\.rl_games: "),
        ("optimiser_step_s = 0.0047", "", "both optimiser_steps and optimiser_step_s"),
        ("optimiser_step_s = 0.0047", "optimiser_step_s = 0.47", "less than iteration_s together"),
        (" world_size = 1,", "", f"{HAND}: .*world_size where ranks_learn_alone"),
        ("ranks_learn_alone = ", "# ", f"{HAND}: .*world_size where ranks_learn_alone"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    with pytest.raises(MatrixError, match=why):
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
