"""Options of all commands: wrong ones and useless ones are refused by name, with one exit code."""

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from suite import __main__
from suite.__main__ import main, parse
from suite.commands.campaigns import options_of
from suite.errors import UsageError
from suite.options.types import slurm_time
from tests.fixtures.runs.command_parsers import SESSIONS, parsers


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders ``a`` and ``b`` in the folder one is in: what is wrong is the option."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()


@pytest.mark.parametrize("session", SESSIONS)
@pytest.mark.usefixtures("results")
def test_a_wrong_option_ends_as_the_readme_says(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    """argparse ends with 2, which of ``compare`` means cases that cannot be compared."""
    valid = {
        "export": ["a", "--format", "csv"],
        "compare": ["a", "b"],
        "report": ["a"],
        "submit": ["a"],
        "accept": ["a"],
        "learning_references": ["a", "--at", "20"],
    }
    assert SESSIONS[session]([*valid.get(session, ()), "--helf"]) == UsageError.exit_code
    error = capsys.readouterr().err
    assert error == f"unrecognized arguments: --helf. Did you mean '--help'?\nSee: nox -s {session} -- --help\n"


@pytest.mark.parametrize("session", [*SESSIONS, "plan", "bench", "store", "watch", "build", "bundle", "env_check"])
def test_help_shows_the_command_as_it_is_typed(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        SESSIONS[session](["--help"]) if session in SESSIONS else main([session, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: nox -s {session} -- ")


@pytest.mark.parametrize("command", parsers())
def test_no_option_takes_an_empty_value_or_one_of_two_lines(command: str) -> None:
    for action in parsers()[command]._actions:
        if action.nargs == 0 or action.choices:
            continue
        read = action.type
        assert callable(read), f"{action.dest} takes any text"
        for value in ("", "a\nb", "gpu01\n,gpu02"):
            with pytest.raises((argparse.ArgumentTypeError, ValueError)):
                read(value)


ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("command", "option", "value"),
    [
        ("bench", "--gpus", "0"),
        ("plan", "--target-precision", "abc"),
        ("plan", "--budget-minutes", "nan"),
        ("bench", "--nodes", ","),
        ("plan", "--nodes", "gpu01,-oProxyCommand=x"),
        ("env_check", "--nodes", "a$(x)"),
        ("bench", "--gpu-type", "a b"),
        ("bench", "--nodes", "gpu01,fd00::2"),
        ("bench", "--seed", "-5"),
        ("plan", "--seed", "4294967295"),
        ("bench", "--with", "newton"),
        ("bench", "--sbatch-option", "--foo"),
        ("bench", "--sbatch-option", "mem=0\n#SBATCH"),
        ("bench", "--time", "abc"),
        ("plan", "--out", "--"),
        ("plan", "--repeats", "1001"),
        ("plan", "--volume-claim", 'A B"'),
        ("bench", "--account", "a\u2028b"),
        ("plan", "--out", os.fsdecode(b"a\xff")),
        ("store", "DIR", "a" * 256),
        ("bench", "--emulate-nodes", "1"),
        ("bench", "--shm-gb", "-1"),
        ("bench", "--stack", "unity"),
        ("bench", "--repeat-it", ""),
        ("env_check", "--require", "cuda,"),
        ("env_check", "--ssh-config", "/dev/zero"),
        ("bench", "--ssh-config", "/none"),
    ],
)
def test_a_wrong_option_is_named(command: str, option: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command, value if option == "DIR" else f"{option}={value}"]) == 11
    error = capsys.readouterr().err
    assert option in error
    assert f"See: nox -s {command} -- --help" in error


def test_a_misspelt_option_or_command_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    for command, answer in (
        ("bench --matrx smoke", "'--matrix'"),
        ("env_check --requires=cuda kitless", "'--require'"),
        ("plan smoke", "smoke"),
        ("", "See: nox -l\n"),
        ("fly", "See: nox -l\n"),
    ):
        assert main(command.split()) == 11
        assert answer in capsys.readouterr().err


def test_plan_prints_what_would_run_and_why_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["plan", "--matrix", "full", "--device", "cuda", "--series", "ant-weak", "--rl-library", "rl_games"]) == 0
    )
    printed = capsys.readouterr().out
    assert "ant-weak/rl_games-kitless-n1024-1x1" in printed
    assert "minibatch 16,384 a process" in printed
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


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("bench --launcher container --nodes a,b", "--nodes"),
        ("bench --shm-gb 2", "--shm-gb"),
        ("bench --ssh-config /dev/null", "--ssh-config"),
        ("bench --launcher slurm --render-only --upstream --profile 0 --video --retry-failed", "--retry-failed"),
        ("plan --image x", "--image"),
        ("plan --volume-claim x", "--volume-claim"),
        ("plan --render kubernetes --image i --nodes a,b", "--nodes"),
        ("plan --render kubernetes --image i --worker-python p", "--worker-python"),
        ("bench --partition p --time 5 --render-only", "--partition, --time"),
        ("bench --worker-python p --worker-package a==1", "--worker-package"),
        ("bench --launcher container --worker-package a==1", "--worker-package"),
        ("bench --nodes a,b --emulate-nodes 2", "--emulate-nodes"),
    ],
)
def test_what_would_do_nothing_is_refused(command: str, option: str) -> None:
    with pytest.raises(UsageError, match=option):
        options_of(parse(command.split()))


@pytest.mark.parametrize(
    "command",
    [
        "bench",
        "bench --profile 0,3 --upstream --video --retry-failed",
        "bench --launcher container --image i --shm-gb 2 --accept-eula",
        "bench --launcher apptainer --image i.sif",
        "bench --launcher slurm --partition gpu --account robots --time 1-0 --sbatch-option mem=0 --upstream",
        "bench --launcher slurm --image i.sif --render-only --ignore-env-check --no-report",
        "bench --launcher ray --ignore-env-check --device cpu",
        "bench --nodes a,b --ssh-config /dev/null",
        "bench --launcher ssh --nodes a,b",
        "bench --emulate-nodes 2",
        "plan --nodes a,b --ssh-config /dev/null",
        "plan --render kubernetes --image i --volume-claim x --out d --accept-eula",
        "plan --render osmo --image i --out d --host-label ours",
        "plan --worker-python p",
        "bench --nodes a,b --worker-package ../mine --worker-package my-robots==1.2",
    ],
)
def test_what_makes_sense_together_is_not(command: str) -> None:
    options_of(parse(command.split()))


def test_settings_of_ssh_without_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env_check", "--ssh-config", "/dev/null", "--nodes"]) == 11
    assert "--ssh-config /dev/null" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["5", "5:30", "1:00:00", "2-0", "2-00:30", "2-00:30:00", "0", "UNLIMITED", "infinite"])
def test_every_form_of_time_that_slurm_takes(text: str) -> None:
    assert slurm_time(text) == text
