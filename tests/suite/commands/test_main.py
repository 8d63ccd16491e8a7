import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite import __main__
from suite.__main__ import main, parse
from suite.commands.campaign_options import options_of
from suite.matrix.file import matrix_names

ROOT = Path(__file__).resolve().parents[3]


def test_options_reach_the_campaign() -> None:
    arguments = parse(
        [
            "bench",
            "--matrix",
            "full",
            "--series",
            "ant-weak",
            "--case",
            "*1x2",
            "--gpus",
            "1,2",
            "--rl-library",
            "rsl_rl",
        ]
    )
    assert arguments.command == "bench"
    chosen = options_of(arguments).selection
    assert (chosen.matrix, chosen.series, chosen.case_globs) == ("full", ("ant-weak",), ("*1x2",))
    assert (chosen.gpus, chosen.rl_libraries) == ((1, 2), ("rsl_rl",))


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["bench", "--gpus", "0"], "got '0', allowed are whole numbers from 1 on, e.g. 2 or 1,2,4"),
        (["bench", "--gpus", "x"], "got 'x', allowed are whole numbers from 1 on"),
        (["plan", "--gpus", "1,"], "got '1,', allowed are whole numbers from 1 on"),
        (["plan", "--repeats", "x"], "got 'x', allowed are whole numbers from 1 to 1000"),
        (["plan", "--target-precision", "abc"], "got 'abc', allowed is more than 0 and less than 1, e.g. 0.01"),
        (["plan", "--budget-minutes", "nan"], "got 'nan', allowed is a number above 0"),
        (["bench", "--nodes", ","], "got ',', which names no host; allowed is one or more, e.g. gpu01,gpu02"),
        (["plan", "--nodes", ""], "got '', which names no host"),
        (["env_check", "--nodes", ","], "got ',', which names no host"),
        (["env_check", "--nodes="], "got '', which names no host"),
        (["plan", "--nodes", "gpu01,-oProxyCommand=x"], "got '-oProxyCommand=x'; allowed is [USER@]HOST"),
        (["bench", "--nodes", "gpu01;x"], "got 'gpu01;x'; allowed is [USER@]HOST"),
        (["env_check", "--nodes", "a$(x)"], "got 'a$(x)'; allowed is [USER@]HOST"),
        (["plan", "--nodes", "ada@-x"], "got 'ada@-x'; allowed is [USER@]HOST"),
        (["bench", "--launcher", "slurm", "--gpu-type", "a b"], "got 'a b', allowed is the name of a kind"),
        (["bench", "--nodes", "gpu01,fd00::2"], "got fd00::2; allowed are names and IPv4 addresses"),
        (["plan", "--nodes", "me@[fd00::2],10.0.0.1"], "got me@[fd00::2]; allowed are names and IPv4 addresses"),
        (["bench", "--seed", "-5"], "got '-5', allowed are whole numbers from 0 to 4000000000"),
        (["plan", "--seed", "4294967295"], "got '4294967295', allowed are whole numbers"),  # rank 1 would have 2**32
        (["plan", "--seed", "x"], "got 'x', allowed are whole numbers"),
        (["bench", "--with", "newton"], "got 'newton', should be name==version, such as newton==1.8.0"),
        (["bench", "--sbatch-option=--foo"], "got '--foo', allowed is NAME or NAME=VALUE"),
        (["bench", "--sbatch-option", ""], "got '', allowed is NAME or NAME=VALUE"),
        (["bench", "--sbatch-option", "=x"], "got '=x', allowed is NAME or NAME=VALUE"),
        (["bench", "--sbatch-option", "mem=0\n#SBATCH"], "NAME=VALUE on one line"),
        (["bench", "--time", "abc"], "got 'abc', allowed are minutes"),
        (["plan", "--out=--"], "argument --out: got '--', allowed is a value"),
        (["plan", "--repeats", "1001"], "got '1001', allowed are whole numbers from 1 to 1000"),
        (["plan", "--render", "kubernetes", "--volume-claim", 'A B"'], "allowed are names as Kubernetes has them"),
        # what no line of a script, no file and no terminal takes
        (["bench", "--partition", "gpu\nrm x"], "argument --partition: got 'gpu\\nrm x', which has '\\n', a control"),
        (["bench", "--account", "a\u2028b"], "a line break; allowed is one line of UTF-8 text"),
        (["bench", "--sbatch-option", "mem=\t0"], "NAME=VALUE on one line"),
        (["bench", "--nodes", "gpu01\n,gpu02"], "which has '\\n', a control character; allowed are names of hosts"),
        (["bench", "--out", "a\nb"], "argument --out: got 'a\\nb', which has '\\n', a control character"),
        (["plan", "--out", os.fsdecode(b"a\xff")], "a byte that is not UTF-8; allowed is another path"),
        (["store", "a" * 256], "a name of 256 bytes, more than 255"),
        (["bundle", "--out", "a/" * 2000], "which has 4000 bytes, more than 3000"),
        (["bench", "--emulate-nodes", "1"], "got '1', allowed is a whole number, 2 or more"),  # one is no path between
        (["bench", "--shm-gb", "-1"], "got '-1', allowed is a number above 0"),
        (["bench", "--stack", "unity"], "'kitless', 'ovphysx', 'isaacsim'"),
        (["bench", "--repeat-it"], "unrecognized arguments: --repeat-it"),
        (["env_check", "--require", "cuda,"], "got '', allowed are cuda, cuda-graphs, nccl"),
        # what a variable that is not set leaves: the folder one is in, or the default
        (["bench", "--out", ""], "argument --out: got '', allowed is a path, such as . for the folder you are in"),
        (["plan", "--worker-python="], "argument --worker-python: got '', allowed is a path"),
        (["store", ""], "argument DIR: got '', allowed is a path"),
        (["env_check", "--image", ""], "argument --image: got '', allowed is any text but an empty one"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_allowed(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 11
    error = capsys.readouterr().err
    assert said in error
    assert f"See: nox -s {argv[0]} -- --help" in error


def test_a_misspelt_option_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--matrx", "smoke"]) == 11
    assert "unrecognized arguments: --matrx smoke. Did you mean '--matrix'?" in capsys.readouterr().err
    assert main(["env_check", "--requires=cuda", "kitless"]) == 11
    assert "--requires=cuda kitless. Did you mean '--require'?" in capsys.readouterr().err
    assert main(["plan", "smoke"]) == 11
    assert capsys.readouterr().err == "unrecognized arguments: smoke\nSee: nox -s plan -- --help\n"


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
    assert f"The worker's Python {missing} does not exist. Pass the path of a Python." in printed.err
    assert "can run here" not in printed.out
    missing.write_text("no program")
    assert main(["plan", "--worker-python", str(missing)]) == 12
    assert f"The worker's Python {missing} does not run: Not a program." in capsys.readouterr().err
    assert main(["plan", "--worker-python", "/bin/false"]) == 0  # bench says what is wrong with one that is there


def test_a_folder_that_no_script_can_name_has_no_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a\nb").mkdir()
    monkeypatch.chdir(tmp_path / "a\nb")
    assert main(["plan", "--out", "results"]) == 11
    assert "a\\nb/results', which has '\\n', a control character. Choose another with --out." in capsys.readouterr().err


def test_bytes_that_are_not_utf_8_are_printed_as_escapes() -> None:
    environ = {**os.environ, "PYTHONPATH": os.fsdecode(b"/\xff"), "PYTHONIOENCODING": "utf-8:strict"}
    command = [sys.executable, "-m", "suite", "plan", "--series", "ant-weak", "--device", "cpu"]
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, "/\\udcff" in done.stdout) == (0, True), done.stderr


def test_an_empty_selection_is_an_error_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--series", "bat-strong"]) == 10
    assert "cartpole-strong" in capsys.readouterr().err


def test_help_names_every_matrix(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", "--help"])
    said = "".join(capsys.readouterr().out.split())  # a line may end within a name
    assert f"{','.join(matrix_names())},orthepathofaTOMLfile" in said


def test_one_round_is_no_rounds(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "--device", "cpu"]) == 0
    assert "4 iterations, 1 round\n" in capsys.readouterr().out


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
