"""Matrices and the catalog: reading, refusing, expanding, selecting. Those of labscale are in test_shipped_matrices."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import MatrixError
from suite.matrix.cases import Minibatch, expand, minibatch_per_rank
from suite.matrix.catalog import CATALOG_PATH, AgentEntry, Catalog, load_catalog
from suite.matrix.file import load_matrix
from suite.matrix.selection import selected_cases, with_packages
from suite.matrix.tables import Matrix
from suite.schema.record import Case, MinibatchRule

HAND = "Isaac-Reorient-Cube-Shadow-Camera-Direct"
OF_ANT = 'aliases = ["Isaac-Ant-v0"]'


def test_ids_of_both_releases_resolve_and_an_unknown_one_gets_the_nearest(catalog: Catalog) -> None:
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
        (OF_ANT, f'{OF_ANT}\ntask = "Isaac-Anthill"', r"Isaac-Ant\.task: unknown key"),
        (OF_ANT, f'{OF_ANT}\nobstacles = {{ isaacsim = "no" }}', r"Isaac-Ant\.obstacles: unknown key"),
        ("differences = [", "differences = []\nothers = [", r"Isaac-Ant\.differences: got \[\]"),
        ("[libraries.rl_games]", "others = []\n[libraries.rl_games]", "others: unknown key"),
        (
            "horizon_length={num_steps_per_env}",
            "horizon_length={num_steps}",
            r"libraries\.rl_games\.num_steps_override",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    text = CATALOG_PATH.read_text(encoding="utf-8")
    assert old in text
    with pytest.raises(MatrixError, match=why):
        load_catalog(write(tmp_path, text.replace(old, new)))


def test_tables_that_contradict_each_other_are_all_named_at_once(tmp_path: Path) -> None:
    text = CATALOG_PATH.read_text(encoding="utf-8").replace(OF_ANT, 'aliases = ["Isaac-Cartpole-Direct"]')
    text = re.sub(r"(?s)\[libraries\.lerobot\].*?\n\n", "", text).replace(
        'Direct", "Isaac-Ant"]', 'Direct", "Isaac-Ants"]'
    )
    with pytest.raises(MatrixError) as error:
        load_catalog(write(tmp_path, text))
    assert re.findall(r"line \d+: (.+?: \w+ [\w-]+);", str(error.value)) == [
        "libraries: lacks lerobot",
        "stacks.ovphysx.tasks: got Isaac-Ants",
        "tasks.Isaac-Ant.aliases: got Isaac-Cartpole-Direct",
    ]


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return load_catalog()


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


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


def edited(tmp_path: Path, *edits: tuple[str, str], more: str = "") -> Path:
    """The matrix with texts replaced, and with more lines of its series."""
    text = MATRIX
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return write(tmp_path, text + more)


def cases_of(path: Path, catalog: Catalog) -> list[Case]:
    return expand(load_matrix(path, catalog), catalog, device="cuda", assets="offline")


def test_cold_and_warm_cases_differ_in_id_and_kernel_cache_alone(tmp_path: Path, catalog: Catalog) -> None:
    one_node = MATRIX.replace(', "2x4"', "")
    series = one_node[one_node.index("[[series]]") :]
    cases = cases_of(write(tmp_path, f'{one_node}\n{series}kernel_cache = "empty"\n'), catalog)
    assert [case.case_id.partition("/")[2] for case in cases] == [
        "rl_games-kitless-n4096-1x1", "rl_games-kitless-n4096-1x2",
        "rl_games-kitless-n4096-1x1-cold", "rl_games-kitless-n4096-1x2-cold",
    ]  # fmt: skip
    for warm, other in zip(cases[:2], cases[2:], strict=True):
        assert other == replace(warm, case_id=f"{warm.case_id}-cold", kernel_cache="empty")


def test_a_case_holds_what_matrix_and_catalog_say(tmp_path: Path, catalog: Catalog) -> None:
    series = 'timeout_s = 60\nnum_steps_per_env = 8\nminibatch_size = 4096\noverrides = ["env.x=1"]\n'
    matrix = load_matrix(edited(tmp_path, more=series), catalog)
    cases = expand(matrix, catalog, device="cpu", assets="official", seed=3)
    assert cases[2] == Case(
        case_id="one/rl_games-kitless-cpu-n4096-2x4", series="one", scaling="strong", task="Isaac-Ant",
        rl_library="rl_games", stack="kitless", device="cpu", nnodes=2, nproc_per_node=4, num_envs=512,
        num_envs_global=4096, num_steps_per_env=8, iterations=5, minibatch_rule="fixed_minibatch", minibatch_size=4096,
        optimiser_steps=4, seed=3, assets="official", timeout_s=60.0, hang_timeout_s=300.0,
        overrides=("agent.params.config.horizon_length=8", "agent.params.config.minibatch_size=4096", "env.x=1"),
    )  # fmt: skip
    assert {case.seed for case in expand(matrix, catalog, device="cpu", assets="official")} == {7}


@pytest.mark.parametrize("apart", ["999", "100001", "1.5", "-1", '"x"'])
def test_seeds_of_rounds_are_apart_by_more_than_ranks_and_less_than_seeds(
    tmp_path: Path, catalog: Catalog, apart: str
) -> None:
    path = edited(tmp_path, ("seed = ", f"seed_per_round = {apart}\nseed = "))
    with pytest.raises(MatrixError, match=r"seed_per_round: got .*; should be true, false or a number"):
        load_matrix(path, catalog)


@pytest.mark.parametrize("apart", ["false", "true", "1000", "1999", "2000"])
def test_no_seed_of_a_run_is_that_of_another_rank_in_the_next(tmp_path: Path, catalog: Catalog, apart: str) -> None:
    path = edited(tmp_path, ("seed = ", f"seed_per_round = {apart}\nseed = "), ('"1x2", "2x4"', '"2x1000", "1xall"'))
    if apart in {"1000", "1999"}:
        with pytest.raises(
            MatrixError, match=rf"line 13: series\[0\]\.topologies: got 2x1000, .*up to {apart} processes"
        ):
            load_matrix(path, catalog)
    else:
        assert load_matrix(path, catalog).seed_per_round in {False, True, 2000}


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
    path = edited(tmp_path, ('"rl_games"', f'"{library}"'), ('"1x1", "1x2", "2x4"', '"1x2"'), more=series)
    assert [case.overrides for case in cases_of(path, catalog)] == [tokens]


def test_the_critic_of_the_hand_follows_the_minibatch(tmp_path: Path, catalog: Catalog) -> None:
    path = edited(tmp_path, ("Isaac-Ant-v0", HAND), more="minibatch_size = 16384")
    assert cases_of(path, catalog)[0].overrides == (
        "agent.params.config.minibatch_size=16384",
        "agent.params.config.central_value_config.minibatch_size=16384",
    )


def test_each_version_follows_the_case_that_it_is_compared_with(tmp_path: Path, catalog: Catalog) -> None:
    versions = 'versions = { old = ["newton==1.6.0"], new = ["warp-lang==1.19.0", "newton==1.6.1"] }'
    path = edited(tmp_path, ('"1x2", "2x4"', '"1x2"'), ('["rl_games"]', '["rl_games", "rsl_rl"]'), more=versions)
    of_rsl_rl = [
        (case.case_id, case.division, case.with_packages)
        for case in cases_of(path, catalog)
        if case.rl_library == "rsl_rl" and case.world_size == 1
    ]
    case_id = "one/rsl_rl-kitless-n4096-1x1"
    assert of_rsl_rl == [
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
    assert selected_cases(cases) == cases
    assert {case.series for case in selected_cases(cases, series=["shadow-*"])} == {"shadow-horizontal"}
    assert {case.world_size for case in selected_cases(cases, gpus=[2])} == {2}
    assert {case.rl_library for case in selected_cases(cases, rl_library=["rl_games"])} == {"rl_games"}
    chosen = selected_cases(cases, case_glob=["cartpole*-1x1-*", "ant*"], gpus=[1])
    assert [case.series for case in chosen] == ["cartpole-strong", "ant-weak"]


def test_selecting_nothing_lists_what_exists(smoke: Matrix, catalog: Catalog) -> None:
    cases = expand(smoke, catalog, device="cuda", assets="offline")
    with pytest.raises(MatrixError) as error:
        selected_cases(cases, series=["ant-weak"], gpus=[8])
    message = str(error.value)
    assert "series ant-weak; GPUs 8" in message
    assert "rsl_rl, skrl, sb3, rl_games" in message
    assert all(case.case_id in message for case in cases)


@pytest.mark.parametrize(
    "override",
    [
        "agent.agent.learning_rate_scheduler=__import__('os').system('true') or KLAdaptiveLR",
        "agent.agent.learning_rate_scheduler=exit",
        "agent.algorithm.class_name=os:abort",
        "env.scene.robot.spawn.usd_path=/tmp/robot.usd",
        "env.log_dir=${oc.env:HOME}",
        "env.x+=1",
        "env.x=",
        "env.__class__.x=1",
        f"env.{'a.' * 400}b=1",
        f"env.x={'9' * 5000}",
    ],
)
def test_an_override_is_data(tmp_path: Path, catalog: Catalog, override: str) -> None:
    """A library would evaluate, import or open it, or it is no field."""
    text = '"""' + override.replace('"', '\\"') + '"""'
    with pytest.raises(MatrixError, match=r"\n  line 14: series\[0\]\.overrides\[0\]: got .*; should "):
        load_matrix(edited(tmp_path, more=f"overrides = [{text}]"), catalog)


@pytest.mark.parametrize(
    "value", ["1", "-2.5e-4", "true", "False", "null", "[256, 128]", "max-autotune", "KLAdaptiveLR"]
)
def test_values_of_an_override(tmp_path: Path, catalog: Catalog, value: str) -> None:
    path = edited(tmp_path, more=f'overrides = ["agent.algorithm.x_1={value}"]')
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
        ("rounds = 2", "rounds = 2\nonly_learning = true\nprecision = 0.1", "precision"),
        ("num_envs = 4096", "num_envs = 0", "series[0].num_envs"),
        ("num_envs = 4096", "num_envs = 1\nminibatch_size = 1000000001", "series[0].minibatch_size"),
        ("iterations = 5", "iterations = 1", "series[0].iterations"),
        ('"1x2"', '"2"', "series[0].topologies[1]"),
        ('"2x4"', '"2x400000"', "series[0].topologies[2]"),
        ('"1x2"', '"1x1"', "series[0].topologies"),
        ('"1x1"', '"1xall", "1xall"', "series[0].topologies"),
        ("Isaac-Ant-v0", "Isaac-Ent", "series[0].task"),
        ('Isaac-Ant-v0"\nrl_libraries = ["rl_games"', f'{HAND}"\nrl_libraries = ["skrl"', "series[0].rl_libraries"),
    ],
)
def test_what_a_matrix_may_not_say(tmp_path: Path, catalog: Catalog, old: str, new: str, key: str) -> None:
    with pytest.raises(MatrixError, match=rf"\n  line \d+: {re.escape(key)}: "):
        load_matrix(edited(tmp_path, (old, new)), catalog)


def test_where_only_what_is_learned_counts_there_is_nothing_but_training(tmp_path: Path, catalog: Catalog) -> None:
    learning = ("rounds = 2", "rounds = 2\nonly_learning = true")
    (series,) = load_matrix(edited(tmp_path, learning), catalog).series
    assert series.workload == "train"
    with pytest.raises(MatrixError, match=r"series\[0\]\.workload: got 'environment_step'; with only_learning"):
        load_matrix(edited(tmp_path, learning, more='workload = "environment_step"'), catalog)
    of_times = {"precision": "0.1", "a_a": "true", "turns_check": "true", "warm_up": "true"}
    all_of_them = "\n".join([learning[1], *(f"{key} = {value}" for key, value in of_times.items())])
    with pytest.raises(MatrixError) as refused:
        load_matrix(edited(tmp_path, (learning[0], all_of_them)), catalog)
    assert re.findall(r"\n  line \d+: (\w+): ", str(refused.value)) == [*of_times]


OPEN = 'division = "open"\nvariant = "x"\n'


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ("pin_cpus = true", "pin_cpus"),
        ("deterministic = true", "deterministic"),
        ("trainings_per_gpu = 2", "trainings_per_gpu"),
        ('with_packages = ["newton==1.8.0"]', "with_packages"),
        (OPEN + 'with_packages = ["newton==1", "Newton==2"]', "with_packages"),
        ('variant = "x"', "variant"),
        ('division = "open"', "division"),
        (OPEN, "rl_libraries"),
        ('kernel_cache = "empty"', "topologies"),
        ('kernel_cache = "empty"\nworkload = "all_reduce"', "workload"),
        (OPEN.replace("x", "cold"), "variant"),
        (OPEN.replace("x", "no-alone"), "variant"),
        (OPEN + 'versions = { b = ["newton==1.6.0"] }', "versions"),
        ('versions = { a = ["newton==1.6.0", "newton==1.6.1"] }', "versions.a"),
        ('versions = { new-cold = ["newton==1.6.0"] }', "versions.new-cold"),
        ('versions = { a = ["newton"] }', "versions.a[0]"),
        ('versions = { a = ["newton-tools==1"] }', "versions.a"),
        ('overrides = ["x=1"]', "overrides[0]"),
        ('overrides = ["env.seed=1"]', "overrides"),
        ("num_steps_per_env = 9223372036854775807", "num_steps_per_env"),
        ("timeout_s = 1e300", "timeout_s"),
    ],
)
def test_what_a_table_may_not_say(tmp_path: Path, catalog: Catalog, more: str, key: str) -> None:
    with pytest.raises(MatrixError, match=rf"\n  line \d+: {re.escape(f'series[0].{key}')}: "):
        load_matrix(edited(tmp_path, more=more), catalog)


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


BY_SIZE = AgentEntry(num_steps_per_env=10, minibatch_size=400, learning_epochs=2)
BY_COUNT = AgentEntry(num_steps_per_env=10, num_minibatches=4, learning_epochs=2)


@pytest.mark.parametrize(
    ("agent", "rule", "minibatch_size", "size", "count"),
    [
        (BY_SIZE, "fixed_minibatch", None, 400, 2),
        (BY_SIZE, "fixed_updates", None, 200, 4),
        (BY_SIZE, "fixed_minibatch", 800, 800, 1),
        (BY_SIZE, "fixed_updates", 800, 400, 2),
        (BY_COUNT, "fixed_minibatch", None, 400, 2),
        (BY_COUNT, "fixed_updates", None, 200, 4),
    ],
)
def test_two_ranks_share_a_batch(
    agent: AgentEntry, rule: MinibatchRule, minibatch_size: int | None, size: int, count: int
) -> None:
    minibatch = minibatch_per_rank(
        agent, rule=rule, single_rank_batch=1600, batch=800, ranks_sharing=2, minibatch_size=minibatch_size
    )
    assert minibatch == Minibatch(size=size, count=count)
