"""What a matrix file may not say, and the words in which it is refused."""

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
        "agent.agent.exploration_scheduler=open('/tmp/x', 'w')",
        "agent.models.policy.network.activations=[elu, relu]",
        "agent.models.policy.clip_actions={'a': 1}",
        "agent.algorithm.class_name=os:abort",
        "agent.algorithm.class_name=os.abort",
        "agent.policy_kwargs.activation_fn=nn.Module",
        "env.events.reset.func=antigravity:geohash",
        "env.events.reset.func=lambda *x: x",
        "env.scene.robot.spawn.usd_path=/tmp/robot.usd",
        "env.log_dir=${oc.env:HOME}",
        "env.x+=1",
        "env.x=1\\n2",
        "env.x=",
        "env.__class__.x=1",
        "env.scene._data=1",
        "env..x=1",
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
    ("old", "new", "line", "key", "part"),
    [
        ("rounds = 2", "rounds = 0", 2, "rounds", "got 0; should be greater than 0"),
        ("seed = 7", "seed = -1", 3, "seed", "got -1; should be greater than or equal to 0"),
        ("seed = 7", "seed = 4294967295", 3, "seed", "got 4294967295; should be less than or equal to 4000000000"),
        ("rounds = 2", "rounds = true", 2, "rounds", "got True; should be a valid integer"),
        ("rounds = 2", "rounds = 2\nprecision = 1.0", 3, "precision", "got 1.0; should be less than 1"),
        ("rounds = 2", "rounds = 2\nprecision = 0", 3, "precision", "should be greater than 0"),
        ("rounds = 2", "rounds = 2\nmax_rounds = 5", 3, "max_rounds", "got 5 without a precision"),
        ("rounds = 2", "rounds = 2\nprecision = 0.1\nmax_rounds = 1", 4, "max_rounds", "should be at least rounds"),
        ("rounds = 2", "rounds = 2\nmax_round = 5", 3, "max_round", "Did you mean 'max_rounds'?"),
        ("rounds = 2", "rounds = 2\na_a = 1", 3, "a_a", "should be a valid boolean"),
        ("seed = 7", "sed = 7", 3, "sed", "Did you mean 'seed'?"),
        ("num_envs = 4096", "num_envs = 0", 11, "series[0].num_envs", "got 0; should be greater than 0"),
        ("iterations = 5", "iterations = 1", 13, "series[0].iterations", "got 1; should be greater than or equal to 2"),
        ("num_envs = 4096", "num_envs = 4.5", 11, "series[0].num_envs", "got 4.5; should be a valid integer"),
        ("num_envs = 4096", "nun_envs = 1", 11, "series[0].nun_envs", "Did you mean 'num_envs'?"),
        ('"strong"', '"strung"', 8, "series[0].scaling", "got 'strung'; should be 'strong' or 'weak'"),
        ('"1x2"', '"2"', 12, "series[0].topologies[1]", "got '2'; should match pattern"),
        ("num_envs = 4096", "num_envs = 4096\nnum_envs_more = [0]", 12, "series[0].num_envs_more[0]", "greater than 0"),
        ("iterations = 5", "iterations = 5\npin_cpus = true", 14, "series[0].pin_cpus", "in the closed division"),
        (
            "iterations = 5",
            "iterations = 5\ndeterministic = true",
            14,
            "series[0].deterministic",
            "in the closed division",
        ),
        ("iterations = 5", "iterations = 5\ntrainings_per_gpu = 2", 14, "series[0].trainings_per_gpu", "weak scaling"),
        (
            "iterations = 5",
            'iterations = 5\nwith_packages = ["newton==1.8.0"]',
            14,
            "series[0].with_packages",
            "in the closed division",
        ),
        (
            "iterations = 5",
            'iterations = 5\nwith_packages = ["newton>=1.8"]',
            14,
            "series[0].with_packages[0]",
            "got 'newton>=1.8'; should be name==version, such as newton==1.8.0",
        ),
        (
            "iterations = 5",
            'iterations = 5\ndivision = "open"\nvariant = "x"\nwith_packages = ["newton==1", "Newton==2"]',
            16,
            "series[0].with_packages",
            "got newton twice; a package has one version",
        ),
        ("iterations = 5", 'iterations = 5\nvariant = "x"', 14, "series[0].variant", "in the closed division"),
        ("iterations = 5", 'iterations = 5\ndivision = "open"', 14, "series[0].division", "needs a variant"),
        (
            "iterations = 5",
            'iterations = 5\nkernel_cache = "empty"',
            12,
            "series[0].topologies",
            "got 2x4 with an empty kernel_cache",
        ),
        (
            "iterations = 5",
            'iterations = 5\nkernel_cache = "empty"\nworkload = "all_reduce"',
            15,
            "series[0].workload",
            "cold starts are measured of training only",
        ),
        ("iterations = 5", 'iterations = 5\nkernel_cache = "cold"', 14, "series[0].kernel_cache", "'empty'"),
        (
            "iterations = 5",
            'iterations = 5\ndivision = "open"\nvariant = "cold"',
            15,
            "series[0].variant",
            "the end of case ids that labscale adds itself",
        ),
        (
            "iterations = 5",
            'iterations = 5\ndivision = "open"',
            10,
            "series[0].rl_libraries",
            "no closed table of series",
        ),
        (
            "iterations = 5",
            'iterations = 5\ndivision = "open"\nvariant = "no-alone"',
            15,
            "series[0].variant",
            "got 'no-alone', the end of case ids that labscale adds itself",
        ),
        (
            "iterations = 5",
            'iterations = 5\nversions = { a = ["newton==1.6.0", "newton==1.6.1"] }',
            14,
            "series[0].versions.a",
            "got newton twice; a package has one version.",
        ),
        (
            "iterations = 5",
            'iterations = 5\nversions = { new-cold = ["newton==1.6.0"] }',
            14,
            "series[0].versions.new-cold",
            "the end of case ids that labscale adds itself",
        ),
        (
            "iterations = 5",
            'iterations = 5\ndivision = "open"\nvariant = "a"\nversions = { b = ["newton==1.6.0"] }',
            16,
            "series[0].versions",
            "got b in the open division; only a closed table is repeated.",
        ),
        (
            "iterations = 5",
            'iterations = 5\nversions = { a = ["newton"] }',
            14,
            "series[0].versions.a[0]",
            "name==version",
        ),
        (
            "iterations = 5",
            'iterations = 5\nversions = { a = ["newton-tools==1"] }',
            14,
            "series[0].versions.a",
            "got newton-tools, which no worker has",
        ),
        ("iterations = 5", "iterations = 5\ntimeout_s = nan", 14, "series[0].timeout_s", "should be a finite number"),
        ("iterations = 5", 'iterations = 5\noverrides = ["x=1"]', 14, "series[0].overrides[0]", "got 'x=1'"),
        ('title = "One"\n', "", 5, "series[0].title", "required, but missing"),
        ("Isaac-Ant-v0", "Isaac-Ent", 9, "series[0].task", "Did you mean 'Isaac-Ant'?"),
        ("iterations = 5", 'iterations = 5\noverrides = ["env.seed=1"]', 14, "series[0].overrides", "labscale sets it"),
        ('"1x2"', '"1x1"', 12, "series[0].topologies", "one/rl_games-kitless-n4096-1x1 occurs twice"),
    ],
)
def test_what_a_matrix_may_not_say(
    tmp_path: Path, catalog: Catalog, old: str, new: str, line: int, key: str, part: str
) -> None:
    with pytest.raises(MatrixError) as error:
        load_matrix(edited(tmp_path, (old, new)), catalog)
    found = [text for text in str(error.value).splitlines() if text.startswith(f"  line {line}: {key}: ")]
    assert len(found) == 1
    assert part in found[0]


def test_a_library_without_an_agent_and_an_unknown_stack(tmp_path: Path, catalog: Catalog) -> None:
    hand = ("Isaac-Ant-v0", "Isaac-Reorient-Cube-Shadow-Camera-Direct")
    path = edited(tmp_path, hand, ('"rl_games"', '"skrl"'))
    few = catalog.model_copy(update={"stacks": {"ovphysx": catalog.stacks["ovphysx"]}})
    with pytest.raises(MatrixError) as error:
        load_matrix(path, few)
    assert "line 10: series[0].rl_libraries: got skrl; " in str(error.value)
    assert "series[0].stacks: got kitless; should be among ovphysx." in str(error.value)


def test_tables_of_one_series_agree(tmp_path: Path, catalog: Catalog) -> None:
    second = MATRIX[MATRIX.index("[[series]]") :].replace('"rl_games"', '"rsl_rl"')
    assert len(cases_of(write(tmp_path, MATRIX + second), catalog)) == 6
    with pytest.raises(MatrixError, match=r"line 17: series\[1\]\.scaling: got 'weak', but series one has 'strong'"):
        load_matrix(write(tmp_path, MATRIX + second.replace('"strong"', '"weak"')), catalog)


def test_an_unknown_name_lists_the_matrices(catalog: Catalog) -> None:
    there_are = "accept, clock, deterministic, env-sweep, first, full, learning, lerobot, nodes, open, physx, releases"
    with pytest.raises(MatrixError, match=rf"unknown matrix 'smok'; there are {there_are}, .*Did you mean 'smoke'\?"):
        load_matrix("smok", catalog)
    with pytest.raises(MatrixError, match=r"unknown matrix 'a+\.\.\.a+'; there are"):
        load_matrix("a" * 5000, catalog)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("iterations = 5", "iterations = 5\nnum_steps_per_env = 9223372036854775807", "less than or equal to 10000"),
        ("num_envs = 4096", "num_envs = 10000001", "less than or equal to 10000000"),
        ("num_envs = 4096", "num_envs = 1\nminibatch_size = 1000000001", "less than or equal to 1000000000"),
        ("iterations = 5", "iterations = 5\ntimeout_s = 1e300", "less than or equal to 100000000"),
        ("rounds = 2", "rounds = 1001", "less than or equal to 1000"),
        ('"2x4"', '"2x400000"', "should match pattern"),
        ('name = "one"', f'name = "{"o" * 65}"', "should have at most 64 characters"),
    ],
)
def test_numbers_and_names_have_limits(old: str, new: str, said: str, tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(MatrixError, match=said):
        load_matrix(edited(tmp_path, (old, new)), catalog)
