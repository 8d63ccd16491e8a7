import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite import __main__
from suite.__main__ import main

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "argv",
    [
        ["bench", "--gpus", "0"],
        ["plan", "--target-precision", "abc"],
        ["plan", "--budget-minutes", "nan"],
        ["bench", "--nodes", ","],
        ["plan", "--nodes", "gpu01,-oProxyCommand=x"],
        ["env_check", "--nodes", "a$(x)"],
        ["bench", "--launcher", "slurm", "--gpu-type", "a b"],
        ["bench", "--nodes", "gpu01,fd00::2"],
        ["bench", "--seed", "-5"],
        ["plan", "--seed", "4294967295"],
        ["bench", "--with", "newton"],
        ["bench", "--sbatch-option=--foo"],
        ["bench", "--sbatch-option", "mem=0\n#SBATCH"],
        ["bench", "--time", "abc"],
        ["plan", "--out=--"],
        ["plan", "--repeats", "1001"],
        ["plan", "--render", "kubernetes", "--volume-claim", 'A B"'],
        ["bench", "--account", "a\u2028b"],
        ["plan", "--out", os.fsdecode(b"a\xff")],
        ["store", "a" * 256],
        ["bench", "--emulate-nodes", "1"],
        ["bench", "--shm-gb", "-1"],
        ["bench", "--stack", "unity"],
        ["bench", "--repeat-it"],
        ["env_check", "--require", "cuda,"],
    ],
)
def test_a_wrong_option_is_named(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 11
    error = capsys.readouterr().err
    option = ["DIR", *(word.partition("=")[0] for word in argv if word.startswith("--"))][-1]
    assert option in error
    assert f"See: nox -s {argv[0]} -- --help" in error


def test_a_misspelt_option_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--matrx", "smoke"]) == 11
    assert "'--matrix'" in capsys.readouterr().err
    assert main(["env_check", "--requires=cuda", "kitless"]) == 11
    assert "'--require'" in capsys.readouterr().err
    assert main(["plan", "smoke"]) == 11
    assert "smoke" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["fly"]])
def test_without_a_command_there_is_the_list_of_all(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 11
    assert capsys.readouterr().err.endswith("See: nox -l\n")


def test_plan_prints_what_would_run_and_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["plan", "--matrix", "full", "--device", "cuda", "--series", "ant-weak", "--rl-library", "rl_games"]) == 0
    )
    printed = capsys.readouterr().out
    assert "ant-weak/rl_games-kitless-n1024-1x1" in printed
    assert "minibatch 16,384 a rank" in printed
    assert "needs a multi-node launcher and 2 nodes" in printed


def test_a_plan_for_a_python_that_is_not_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "python"
    assert main(["plan", "--worker-python", str(missing)]) == 12
    printed = capsys.readouterr()
    assert str(missing) in printed.err
    assert "can run here" not in printed.out
    missing.write_text("no program")
    assert main(["plan", "--worker-python", str(missing)]) == 12
    assert str(missing) in capsys.readouterr().err
    assert main(["plan", "--worker-python", "/bin/false"]) == 0  # bench says what is wrong with one that is there


def test_bytes_that_are_not_utf_8_are_printed_as_escapes() -> None:
    environ = {**os.environ, "PYTHONPATH": os.fsdecode(b"/\xff"), "PYTHONIOENCODING": "utf-8:strict"}
    command = [sys.executable, "-m", "suite", "plan", "--series", "ant-weak", "--device", "cpu"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, "/\\udcff" in done.stdout) == (0, True), done.stderr


def test_signals_of_one_stop_interrupt_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    interrupt = __main__._interrupting()
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGTERM, None)
    interrupt(signal.SIGTERM, None)  # nox was asked to end too, and has ended
    now_s[0] += 2 * __main__.ONE_STOP_S
    with pytest.raises(KeyboardInterrupt):
        interrupt(signal.SIGTERM, None)
