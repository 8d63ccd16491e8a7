"""Matrices: reading, expanding, selecting. What is in those of labscale is in test_shipped_matrices."""

from dataclasses import replace
from pathlib import Path

import pytest

from suite.errors import MatrixError
from suite.matrix.cases import expand, select, with_packages
from suite.matrix.catalog import Catalog
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


def test_the_critic_of_the_hand_follows_the_minibatch(tmp_path: Path, catalog: Catalog) -> None:
    hand = ("Isaac-Ant-v0", "Isaac-Reorient-Cube-Shadow-Camera-Direct")
    path = edited(tmp_path, hand, ("iterations = 5", "iterations = 5\nminibatch_size = 16384"))
    assert cases_of(path, catalog)[0].overrides == (
        "agent.params.config.minibatch_size=16384",
        "agent.params.config.central_value_config.minibatch_size=16384",
    )


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
    assert "series ant-weak; GPUs 8" in message
    assert "rsl_rl, skrl, sb3, rl_games" in message
    assert all(case.case_id in message for case in cases)
