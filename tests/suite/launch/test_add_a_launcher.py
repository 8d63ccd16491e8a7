"""A launcher is one entry in the registry: nothing else has to know it."""

from pathlib import Path

import pytest

from suite.__main__ import main
from suite.launch import registry
from suite.records.store import read_case
from tests.fixtures.runs.real_runs import cartpole, matrix_of
from tests.fixtures.runs.toy_launcher import TOY


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A command whose launcher is the toy, of a matrix with one case of two nodes."""
    monkeypatch.setitem(registry.LAUNCHERS, TOY.name, TOY)
    matrix = tmp_path / "matrix.toml"
    matrix.write_text(matrix_of(cartpole("rsl_rl", topologies=["2x1"])), encoding="utf-8")
    return ["bench", "--matrix", str(matrix), "--out", str(tmp_path / "out"), "--device", "cpu", "--no-report"]


def test_bench_runs_a_round_by_it(bench: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*bench, "--launcher", "toy", "--greeting", "Good morning"]) == 0
    (path,) = (tmp_path / "out" / "cases").rglob("*.json")
    result = read_case(path)
    assert [record.outcome for record in result.rounds] == ["completed"]
    assert f"Good morning, {result.case.case_id}" in capsys.readouterr().out


def test_its_name_is_allowed_and_its_option_is_its_own(bench: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*bench, "--launcher", "moon"]) == 11
    assert "'emulated', 'toy'" in capsys.readouterr().err
    assert main([*bench, "--greeting", "Hi"]) == 11
    assert "--launcher toy" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("--profile", "0"), "which --launcher toy cannot reach"),
        (("--image", "a.sif"), "--image: only with bench --launcher container, apptainer or slurm"),
        (("--render-only",), "--render-only: only with --launcher slurm, got --launcher toy"),
    ],
)
def test_what_it_cannot_do_is_refused(
    bench: list[str], asked: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*bench, "--launcher", "toy", *asked]) == 11
    assert said in capsys.readouterr().err
