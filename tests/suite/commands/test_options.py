"""Options of all commands: wrong ones and useless ones are refused by name, with one exit code."""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reports.accept import command as accept
from reports.compare import command as compare_command
from reports.export import command as export
from reports.figures import learning_references
from reports.site import build, publish
from reports.submit import command as submit
from reports.verification import command as verify
from suite import __main__
from suite import __main__ as suite_command
from suite.__main__ import main, parse
from suite.commands.campaigns import options_of
from suite.errors import UsageError
from suite.launch.images import pins_command
from suite.options.types import slurm_time
from tests.fixtures.runs.command_parsers import parsers

type Main = Callable[[Sequence[str]], int]

SESSIONS: dict[str, Main] = {
    "report": build.main,
    "publish": publish.main,
    "export": export.main,
    "verify": verify.main,
    "submit": submit.main,
    "accept": accept.main,
    "compare": compare_command.main,
    "learning_references": learning_references.main,
    "pins": pins_command.main,
}


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
    said = capsys.readouterr().err
    assert said == f"unrecognized arguments: --helf. Did you mean '--help'?\nSee: nox -s {session} -- --help\n"


@pytest.mark.parametrize("session", [*SESSIONS, "plan", "bench", "store", "watch", "build", "bundle", "env_check"])
def test_help_shows_the_command_as_it_is_typed(session: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        SESSIONS[session](["--help"]) if session in SESSIONS else suite_command.main([session, "--help"])
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


def check(command: str) -> None:
    options_of(parse(command.split()))


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("bench --launcher slurm --render-only --nodes a,b", "--nodes"),
        ("bench --launcher container --nodes a,b", "--nodes"),
        ("bench --shm-gb 2", "--shm-gb"),
        ("bench --ssh-config /dev/null", "--ssh-config"),
        ("bench --launcher slurm --render-only --upstream --profile 0 --video --retry-failed", "--retry-failed"),
        ("bench --image x", "--image"),
        ("plan --image x", "--image"),
        ("plan --volume-claim x", "--volume-claim"),
        ("plan --render kubernetes --image i --nodes a,b", "--nodes"),
        ("plan --render osmo --image i --emulate-nodes 2", "--emulate-nodes"),
        ("plan --render kubernetes --image i --worker-python p", "--worker-python"),
        ("bench --partition p --time 5 --render-only", "--partition, --time"),
        ("bench --sbatch-option mem=0", "--sbatch-option"),
        ("bench --nodes a,b --account x", "--account"),
        ("bench --worker-python p --worker-package a==1", "--worker-package"),
        ("bench --launcher container --worker-package a==1", "--worker-package"),
        ("bench --nodes a,b --emulate-nodes 2", "--emulate-nodes"),
    ],
)
def test_what_would_do_nothing_is_refused(command: str, option: str) -> None:
    with pytest.raises(UsageError, match=option):
        check(command)


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
    check(command)


@pytest.mark.parametrize("nodes", [(), ("--nodes",)])
def test_settings_of_ssh_without_hosts(nodes: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env_check", "--ssh-config", "/dev/null", *nodes]) == 11
    assert "--ssh-config /dev/null" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["5", "5:30", "1:00:00", "2-0", "2-00:30", "2-00:30:00", "0", "UNLIMITED", "infinite"])
def test_every_form_of_time_that_slurm_takes(text: str) -> None:
    assert slurm_time(text) == text


@pytest.mark.parametrize("command", ["bench", "env_check"])
@pytest.mark.parametrize("file", ["/dev/zero", "/", "/nowhere"])
def test_an_ssh_configuration_that_no_program_could_read_to_its_end_is_refused(
    command: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, "--nodes", "a,b", "--ssh-config", file]) == UsageError.exit_code
    assert f"--ssh-config: got '{file}'" in capsys.readouterr().err
