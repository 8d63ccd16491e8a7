"""Matrices: reading, expanding, selecting. What is in those of labscale is in test_shipped_matrices."""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import MatrixError
from suite.matrix.cases import expand, select, with_packages
from suite.matrix.catalog import Catalog, load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.tables import Matrix
from suite.schema.record import Case

MATRIX = """\
description = "test"
rounds = 2
seed = 7

[[series]]
name = "one"
title = "One"
scaling = "strong"
task = "Isaac-Ant-v0"
rl_libraries = ["rl_games"]
num_envs = 4096
topologies = ["1x1", "1x2", "2x4"]
iterations = 5
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def edited(tmp_path: Path, *edits: tuple[str, str]) -> Path:
    text = MATRIX
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return write(tmp_path, text)


def cases_of(path: Path, catalog: Catalog) -> list[Case]:
    return expand(load_matrix(path, catalog), catalog, device="cuda", assets="offline")


def test_cold_and_warm_cases_differ_in_id_and_kernel_cache_alone(tmp_path: Path, catalog: Catalog) -> None:
    one_node = MATRIX.replace(', "2x4"', "")
    cold = one_node[one_node.index("[[series]]") :] + 'kernel_cache = "empty"\n'
    cases = cases_of(write(tmp_path, f"{one_node}\n{cold}"), catalog)
    assert [case.case_id.partition("/")[2] for case in cases] == [
        "rl_games-kitless-n4096-1x1", "rl_games-kitless-n4096-1x2",
        "rl_games-kitless-n4096-1x1-cold", "rl_games-kitless-n4096-1x2-cold",
    ]  # fmt: skip
    for warm, other in zip(cases[:2], cases[2:], strict=True):
        assert other == replace(warm, case_id=f"{warm.case_id}-cold", kernel_cache="empty")


def test_a_case_holds_what_matrix_and_catalog_say(tmp_path: Path, catalog: Catalog) -> None:
    series = 'timeout_s = 60\nnum_steps_per_env = 8\nminibatch_size = 4096\noverrides = ["env.x=1"]\n'
    matrix = load_matrix(write(tmp_path, MATRIX + series), catalog)
    cases = expand(matrix, catalog, device="cpu", assets="official", seed=3)
    assert cases[2] == Case(
        case_id="one/rl_games-kitless-cpu-n4096-2x4",
        series="one",
        scaling="strong",
        task="Isaac-Ant",
        rl_library="rl_games",
        stack="kitless",
        device="cpu",
        nnodes=2,
        nproc_per_node=4,
        num_envs=512,
        num_envs_global=4096,
        num_steps_per_env=8,
        iterations=5,
        minibatch_rule="fixed_minibatch",
        minibatch_size=4096,
        optimiser_steps=4,
        seed=3,
        assets="official",
        overrides=("agent.params.config.horizon_length=8", "agent.params.config.minibatch_size=4096", "env.x=1"),
        timeout_s=60.0,
        hang_timeout_s=300.0,
    )
    assert {case.seed for case in expand(matrix, catalog, device="cpu", assets="official")} == {7}


def test_the_defaults_of_an_agent_need_no_override(tmp_path: Path, catalog: Catalog) -> None:
    for library in ("rl_games", "rsl_rl", "skrl", "skrl_jax", "sb3"):
        path = edited(tmp_path, ('"rl_games"', f'"{library}"'), ('"1x1", "1x2", "2x4"', '"1x1"'))
        assert cases_of(path, catalog)[0].overrides == ()


@pytest.mark.parametrize(
    ("library", "tokens"),
    [
        ("rl_games", ("agent.params.config.horizon_length=8", "agent.params.config.minibatch_size=2048")),
        ("rsl_rl", ("agent.num_steps_per_env=8", "agent.algorithm.num_mini_batches=8")),
        ("skrl", ("agent.agent.rollouts=8", "agent.agent.mini_batches=8")),
        ("skrl_jax", ("agent.agent.rollouts=8", "agent.agent.mini_batches=8")),
        ("sb3", ("agent.n_steps=8", "agent.batch_size=2048")),
    ],
)
def test_each_library_is_told_in_its_own_words(
    tmp_path: Path, catalog: Catalog, library: str, tokens: tuple[str, ...]
) -> None:
    series = "num_steps_per_env = 8\nminibatch_size = 2048\n"
    text = MATRIX.replace('"rl_games"', f'"{library}"').replace('"1x1", "1x2", "2x4"', '"1x2"')
    [case] = cases_of(write(tmp_path, text + series), catalog)
    assert case.overrides == tokens


def test_torchrl_is_told_likewise_of_a_task_that_it_has(tmp_path: Path, catalog: Catalog) -> None:
    sizes = ("iterations = 5", "iterations = 5\nnum_steps_per_env = 8\nminibatch_size = 2048")
    library, task = ('"rl_games"', '"torchrl"'), ("Isaac-Ant-v0", "Isaac-Cartpole-Direct")
    path = edited(tmp_path, library, task, ('"1x1", "1x2", "2x4"', '"1x1"'), sizes)
    assert cases_of(path, catalog)[0].overrides == ("agent.num_steps_per_env=8", "agent.num_mini_batches=16")
    with pytest.raises(
        MatrixError, match=r"got torchrl; Isaac-Ant has agents for rl_games, rsl_rl, skrl, skrl_jax, sb3\."
    ):
        load_matrix(edited(tmp_path, library), catalog)


def test_a_control_of_torchrl_has_the_sizes_of_rsl_rls_agent(tmp_path: Path, catalog: Catalog) -> None:
    control = ("iterations = 5", 'iterations = 5\nworkload = "collection"')
    [case, *_] = cases_of(edited(tmp_path, ('"rl_games"', '"torchrl"'), control), catalog)
    agent = catalog.tasks["Isaac-Ant"].agents["rsl_rl"]
    assert (case.rl_library, case.agent_library, case.num_steps_per_env) == (
        "torchrl",
        "rsl_rl",
        agent.num_steps_per_env,
    )


def test_the_critic_of_the_hand_follows_the_minibatch(tmp_path: Path, catalog: Catalog) -> None:
    hand = ("Isaac-Ant-v0", "Isaac-Reorient-Cube-Shadow-Camera-Direct")
    path = edited(tmp_path, hand, ("iterations = 5", "iterations = 5\nminibatch_size = 16384"))
    assert cases_of(path, catalog)[0].overrides == (
        "agent.params.config.minibatch_size=16384",
        "agent.params.config.central_value_config.minibatch_size=16384",
    )


def test_a_chosen_stack_replaces_those_of_the_series(tmp_path: Path, catalog: Catalog) -> None:
    path = edited(tmp_path, ("iterations = 5", 'iterations = 5\nstacks = ["kitless", "ovphysx"]'))
    matrix = load_matrix(path, catalog)
    assert len(expand(matrix, catalog, device="cuda", assets="offline")) == 6
    cases = expand(matrix, catalog, device="cuda", stack="ovphysx", assets="offline")
    assert [case.case_id for case in cases] == [
        "one/rl_games-ovphysx-n4096-1x1",
        "one/rl_games-ovphysx-n4096-1x2",
        "one/rl_games-ovphysx-n4096-2x4",
    ]
    assert {case.presets for case in cases} == {("presets=ovphysx",)}


def test_a_point_that_does_not_divide_is_still_a_case(tmp_path: Path, catalog: Catalog) -> None:
    path = edited(tmp_path, ('"1x2"', '"1x3"'))
    case = cases_of(path, catalog)[1]
    assert (case.num_envs, case.num_envs_global) == (1365, 4096)


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
            'iterations = 5\ndivision = "open"\nvariant = "no-packing"',
            15,
            "series[0].variant",
            "got 'no-packing', the end of case ids that labscale adds itself",
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
    there_are = "accept, clock, deterministic, env-sweep, first, full, learning, nodes, open, physx, releases, sb3"
    with pytest.raises(MatrixError, match=rf"unknown matrix 'smok'; there are {there_are}, .*Did you mean 'smoke'\?"):
        load_matrix("smok", catalog)
    with pytest.raises(MatrixError, match=r"unknown matrix 'a+\.\.\.a+'; there are"):
        load_matrix("a" * 5000, catalog)


def test_a_file_may_have_any_name(tmp_path: Path, catalog: Catalog) -> None:
    path = write(tmp_path, MATRIX).rename(tmp_path / "mine")
    assert load_matrix(str(path), catalog).name == "mine"


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


def test_each_version_follows_the_case_that_it_is_compared_with(tmp_path: Path, catalog: Catalog) -> None:
    versions = 'versions = { old = ["newton==1.6.0"], new = ["warp-lang==1.19.0", "newton==1.6.1"] }'
    libraries = ('["rl_games"]', '["rl_games", "rsl_rl"]')
    path = edited(tmp_path, ("iterations = 5", f"iterations = 5\n{versions}"), ('"1x2", "2x4"', '"1x2"'), libraries)
    found = [
        (case.case_id, case.division, case.with_packages)
        for case in cases_of(path, catalog)
        if case.rl_library == "rsl_rl" and case.world_size == 1
    ]
    case_id = "one/rsl_rl-kitless-n4096-1x1"
    assert found == [
        (case_id, "closed", ()),
        (f"{case_id}-old", "open", ("newton==1.6.0",)),
        (f"{case_id}-new", "open", ("newton==1.6.1", "warp-lang==1.19.0")),
    ]
    with_newer = with_packages(load_matrix(path, catalog), ["newton==1.8.0"])
    newest = expand(with_newer, catalog, device="cuda", assets="offline")[1]
    assert newest.case_id == "one/rl_games-kitless-n4096-1x1-old-newton-1-8-0"
    assert newest.with_packages == ("newton==1.8.0",)


def test_a_sweep_is_a_point_for_each_number_of_environments(tmp_path: Path, catalog: Catalog) -> None:
    path = edited(tmp_path, ("num_envs = 4096", "num_envs = 2048\nnum_envs_more = [4096]"), ('"1x1", ', ""))
    assert [(case.case_id, case.num_envs, case.minibatch_size) for case in cases_of(path, catalog)] == [
        ("one/rl_games-kitless-n2048-1x2", 1024, 32768),
        ("one/rl_games-kitless-n4096-1x2", 2048, 32768),
        ("one/rl_games-kitless-n2048-2x4", 256, 32768),
        ("one/rl_games-kitless-n4096-2x4", 512, 32768),
    ]


@pytest.fixture
def smoke(catalog: Catalog) -> Matrix:
    return load_matrix("smoke", catalog)


def test_select(smoke: Matrix, catalog: Catalog) -> None:
    cases = expand(smoke, catalog, device="cpu", assets="offline")
    assert select(cases) == cases
    assert {case.series for case in select(cases, series=["shadow-*"])} == {"shadow-horizontal"}
    assert {case.world_size for case in select(cases, gpus=[2])} == {2}
    assert {case.rl_library for case in select(cases, rl_library=["rl_games"])} == {"rl_games"}
    chosen = select(cases, case_glob=["cartpole*-1x1-*", "ant*"], gpus=[1])
    assert [case.series for case in chosen] == ["cartpole-strong", "ant-weak"]


def test_selecting_nothing_lists_what_exists(smoke: Matrix, catalog: Catalog) -> None:
    cases = expand(smoke, catalog, device="cuda", assets="offline")
    with pytest.raises(MatrixError) as error:
        select(cases, series=["ant-weak"], gpus=[8])
    message = str(error.value)
    assert message.startswith("no case matches series ant-weak; GPUs 8. Series: cartpole-strong, ant-weak, ")
    assert "RL libraries: rsl_rl, skrl, sb3, rl_games. GPUs: 1, 2. Cases:" in message
    assert all(case.case_id in message for case in cases)
