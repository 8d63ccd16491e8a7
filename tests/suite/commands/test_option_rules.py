"""Options that would do nothing beside the others are refused by name; those that make sense together are not."""

import pytest

from suite.__main__ import main, parse
from suite.commands.campaigns import options_of
from suite.errors import UsageError
from suite.options.types import slurm_time


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
