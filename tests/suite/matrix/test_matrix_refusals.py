"""What a matrix file may not say, and that the refusal names the key."""

import re
from pathlib import Path

import pytest

from suite.errors import MatrixError
from suite.matrix.catalog import Catalog
from suite.matrix.file import load_matrix
from tests.suite.matrix.test_matrix_file import MATRIX, cases_of, edited, write


@pytest.mark.parametrize(
    "override",
    [
        "agent.agent.learning_rate_scheduler=__import__('os').system('true') or KLAdaptiveLR",
        """agent.models.policy.output='__import__("os")'""",
        "agent.agent.learning_rate_scheduler=exit",
        "agent.models.policy.clip_actions={'a': 1}",
        "agent.algorithm.class_name=os:abort",
        "agent.policy_kwargs.activation_fn=nn.Module",
        "env.events.reset.func=antigravity:geohash",
        "env.events.reset.func=lambda *x: x",
        "env.scene.robot.spawn.usd_path=/tmp/robot.usd",
        "env.log_dir=${oc.env:HOME}",
        "env.x+=1",
        "env.x=",
        "env.__class__.x=1",
        "hydra.run.dir=1",
        f"env.{'a.' * 400}b=1",
        f"env.x={'9' * 5000}",
    ],
)
def test_an_override_is_data(tmp_path: Path, catalog: Catalog, override: str) -> None:
    """A library would evaluate, import or open it, or it is no field."""
    text = '"""' + override.replace('"', '\\"') + '"""'
    with pytest.raises(MatrixError, match=r"\n  line 14: series\[0\]\.overrides\[0\]: got .*; should "):
        load_matrix(edited(tmp_path, ("iterations = 5", f"iterations = 5\noverrides = [{text}]")), catalog)


@pytest.mark.parametrize(
    "value", ["1", "-2.5e-4", "true", "False", "null", "[256, 128]", "max-autotune", "KLAdaptiveLR"]
)
def test_values_of_an_override(tmp_path: Path, catalog: Catalog, value: str) -> None:
    path = edited(tmp_path, ("iterations = 5", f'iterations = 5\noverrides = ["agent.algorithm.x_1={value}"]'))
    assert load_matrix(path, catalog).series[0].overrides == (f"agent.algorithm.x_1={value}",)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("rounds = 2", "rounds = 0", "rounds"),
        ("seed = 7", "seed = -1", "seed"),
        ("rounds = 2", "rounds = 2\nprecision = 1.0", "precision"),
        ("rounds = 2", "rounds = 2\nmax_rounds = 5", "max_rounds"),
        ("rounds = 2", "rounds = 2\nprecision = 0.1\nmax_rounds = 1", "max_rounds"),
        ("seed = 7", "sed = 7", "sed"),
        ("num_envs = 4096", "num_envs = 0", "series[0].num_envs"),
        ("iterations = 5", "iterations = 1", "series[0].iterations"),
        ('"1x2"', '"2"', "series[0].topologies[1]"),
        ("iterations = 5", "iterations = 5\npin_cpus = true", "series[0].pin_cpus"),
        ("iterations = 5", "iterations = 5\ndeterministic = true", "series[0].deterministic"),
        ("iterations = 5", "iterations = 5\ntrainings_per_gpu = 2", "series[0].trainings_per_gpu"),
        ("iterations = 5", 'iterations = 5\nwith_packages = ["newton==1.8.0"]', "series[0].with_packages"),
        (
            "iterations = 5",
            'iterations = 5\ndivision = "open"\nvariant = "x"\nwith_packages = ["newton==1", "Newton==2"]',
            "series[0].with_packages",
        ),
        ("iterations = 5", 'iterations = 5\nvariant = "x"', "series[0].variant"),
        ("iterations = 5", 'iterations = 5\ndivision = "open"', "series[0].division"),
        ("iterations = 5", 'iterations = 5\nkernel_cache = "empty"', "series[0].topologies"),
        ("iterations = 5", 'iterations = 5\nkernel_cache = "empty"\nworkload = "all_reduce"', "series[0].workload"),
        ("iterations = 5", 'iterations = 5\ndivision = "open"\nvariant = "cold"', "series[0].variant"),
        ("iterations = 5", 'iterations = 5\ndivision = "open"', "series[0].rl_libraries"),
        ("iterations = 5", 'iterations = 5\ndivision = "open"\nvariant = "no-alone"', "series[0].variant"),
        (
            "iterations = 5",
            'iterations = 5\nversions = { a = ["newton==1.6.0", "newton==1.6.1"] }',
            "series[0].versions.a",
        ),
        (
            "iterations = 5",
            'iterations = 5\nversions = { new-cold = ["newton==1.6.0"] }',
            "series[0].versions.new-cold",
        ),
        (
            "iterations = 5",
            'iterations = 5\ndivision = "open"\nvariant = "a"\nversions = { b = ["newton==1.6.0"] }',
            "series[0].versions",
        ),
        ("iterations = 5", 'iterations = 5\nversions = { a = ["newton"] }', "series[0].versions.a[0]"),
        ("iterations = 5", 'iterations = 5\nversions = { a = ["newton-tools==1"] }', "series[0].versions.a"),
        ("iterations = 5", 'iterations = 5\noverrides = ["x=1"]', "series[0].overrides[0]"),
        ("Isaac-Ant-v0", "Isaac-Ent", "series[0].task"),
        ("iterations = 5", 'iterations = 5\noverrides = ["env.seed=1"]', "series[0].overrides"),
        ('"1x2"', '"1x1"', "series[0].topologies"),
        ("iterations = 5", "iterations = 5\nnum_steps_per_env = 9223372036854775807", "series[0].num_steps_per_env"),
        ("num_envs = 4096", "num_envs = 1\nminibatch_size = 1000000001", "series[0].minibatch_size"),
        ("iterations = 5", "iterations = 5\ntimeout_s = 1e300", "series[0].timeout_s"),
        ('"2x4"', '"2x400000"', "series[0].topologies[2]"),
    ],
)
def test_what_a_matrix_may_not_say(tmp_path: Path, catalog: Catalog, old: str, new: str, key: str) -> None:
    with pytest.raises(MatrixError, match=rf"\n  line \d+: {re.escape(key)}: "):
        load_matrix(edited(tmp_path, (old, new)), catalog)


def test_a_library_without_an_agent_and_an_unknown_stack(tmp_path: Path, catalog: Catalog) -> None:
    hand = ("Isaac-Ant-v0", "Isaac-Reorient-Cube-Shadow-Camera-Direct")
    path = edited(tmp_path, hand, ('"rl_games"', '"skrl"'))
    few = catalog.model_copy(update={"stacks": {"ovphysx": catalog.stacks["ovphysx"]}})
    with pytest.raises(MatrixError) as error:
        load_matrix(path, few)
    assert "series[0].rl_libraries: got skrl" in str(error.value)
    assert "series[0].stacks: got kitless" in str(error.value)


def test_tables_of_one_series_agree(tmp_path: Path, catalog: Catalog) -> None:
    second = MATRIX[MATRIX.index("[[series]]") :].replace('"rl_games"', '"rsl_rl"')
    assert len(cases_of(write(tmp_path, MATRIX + second), catalog)) == 6
    with pytest.raises(MatrixError, match=r"series\[1\]\.scaling: got 'weak'"):
        load_matrix(write(tmp_path, MATRIX + second.replace('"strong"', '"weak"')), catalog)


def test_an_unknown_name_lists_the_matrices(catalog: Catalog) -> None:
    with pytest.raises(MatrixError, match=r"'smok'.* accept, .*'smoke'"):
        load_matrix("smok", catalog)
    with pytest.raises(MatrixError, match=r"'a+\.\.\.a+'"):
        load_matrix("a" * 5000, catalog)
